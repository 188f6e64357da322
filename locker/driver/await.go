package driver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Await returns what call returns, or ctx's error soon after ctx ends; then call goes on in the
// background, and the error is a [*PendingError]. It is for clients whose calls ignore their
// context. It starts a goroutine unless ctx can never end.
func Await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	done := ctx.Done()
	if done == nil {
		return call()
	}
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, NotSent(err)
	}
	return await(ctx, done, call)
}

// AwaitIn is [Await] for a call that needs a place at g. The call keeps the place until it returns,
// even if its caller has left. If ctx ends while waiting for a place, nothing was sent and the
// error matches [ErrNotSent].
func AwaitIn[T any](ctx context.Context, g *Gate, call func() (T, error)) (T, error) {
	var zero T
	if err := g.Enter(ctx); err != nil {
		return zero, err
	}
	if err := ctx.Err(); err != nil {
		g.Leave()
		return zero, NotSent(err)
	}
	within := func() (T, error) {
		defer g.Leave()
		return call()
	}
	if done := ctx.Done(); done != nil {
		return await(ctx, done, within)
	}
	return within()
}

func await[T any](ctx context.Context, done <-chan struct{}, call func() (T, error)) (T, error) {
	f := &awaited[T]{answered: make(chan struct{})}
	go f.run(call)
	select {
	case <-f.answered:
		return f.v, f.err
	case <-done:
	}
	f.pending = &PendingError{err: ctx.Err()}
	if f.decided.Swap(true) { // both were ready: an answer is worth more
		return f.v, f.err
	}
	var zero T
	return zero, f.pending
}

// awaited is a call that its caller may leave.
type awaited[T any] struct {
	v        T
	err      error
	pending  *PendingError // set before the caller leaves
	decided  atomic.Bool   // set by whichever comes first: the call returns, or its caller leaves
	answered chan struct{}
}

func (f *awaited[T]) run(call func() (T, error)) {
	f.v, f.err = call()
	if f.decided.Swap(true) {
		f.pending.answer(f.v, f.err)
		return
	}
	close(f.answered)
}

// PendingError is the error of a call whose caller left before it returned: it is not known yet
// whether the command was sent, or what it did. It wraps the error of the caller's context, and has
// its text.
type PendingError struct {
	err error

	mu        sync.Mutex
	over      bool // v and late are what the call returned
	v         any
	late      error
	callbacks []func(v any, err error)
}

// Error implements error.
func (e *PendingError) Error() string { return e.err.Error() }

// Unwrap returns the error of the caller's context.
func (e *PendingError) Unwrap() error { return e.err }

// OnAnswer arranges for f to be called once, with what the call returns: for SetNX a bool, for Eval
// and EvalAcked a [Reply], each with its error. If the call has returned, OnAnswer calls f itself;
// else the goroutine that finishes the call does. f must not block. If the call never returns, f is
// never called.
func (e *PendingError) OnAnswer(f func(v any, err error)) {
	e.mu.Lock()
	if !e.over {
		e.callbacks = append(e.callbacks, f)
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	f(e.v, e.late)
}

// answer records what the call returned, and passes it to the callbacks.
func (e *PendingError) answer(v any, err error) {
	e.mu.Lock()
	e.over, e.v, e.late = true, v, err
	callbacks := e.callbacks
	e.callbacks = nil
	e.mu.Unlock()
	for _, f := range callbacks {
		f(v, err)
	}
}

// ConvertPending converts the late answer of err, which is or wraps a [*PendingError] of an [Await]
// of T. It returns any other err unchanged. It is for adapters that await the client's own type and
// convert it afterwards.
func ConvertPending[T, U any](err error, convert func(T, error) (U, error)) error {
	p, ok := errors.AsType[*PendingError](err)
	if !ok {
		return err
	}
	converted := &PendingError{err: err}
	p.OnAnswer(func(v any, err error) {
		t, _ := v.(T)
		u, err := convert(t, err)
		converted.answer(u, err)
	})
	return converted
}

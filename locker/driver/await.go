package driver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Await returns what call returns, or ctx's error soon after ctx ends, while call is finished behind. It is for clients
// whose calls ignore their context. A ctx that cannot end costs nothing; any other costs a goroutine. The error of a call
// that was left under way is a [*PendingError].
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

// AwaitIn is [Await] for a call that is to take a place at g, which it keeps until it is over, also where its caller has left.
// Who gives up while waiting for one has sent nothing.
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
	decided  atomic.Bool   // by the first of the two: answered, or left
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

// PendingError is the error of a call that its caller left under way: nobody knows yet whether the command was sent, or what
// came of it. It wraps the error of the caller's context, and has its text.
type PendingError struct {
	err error

	mu   sync.Mutex
	over bool // v and late are what the call returned
	v    any
	late error
	heed []func(v any, err error)
}

// Error implements error.
func (e *PendingError) Error() string { return e.err.Error() }

// Unwrap returns the error of the caller's context.
func (e *PendingError) Unwrap() error { return e.err }

// OnAnswer has f called once with what the call returns in the end: for SetNX a bool, for Eval and EvalAcked a [Reply],
// each with its error. It is called at once if the call has returned, else by the goroutine that finishes the call, which f
// must not hold up. A call that never returns is never answered.
func (e *PendingError) OnAnswer(f func(v any, err error)) {
	e.mu.Lock()
	if !e.over {
		e.heed = append(e.heed, f)
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()
	f(e.v, e.late)
}

// answer hands what the call returned to those who asked for it.
func (e *PendingError) answer(v any, err error) {
	e.mu.Lock()
	e.over, e.v, e.late = true, v, err
	heed := e.heed
	e.heed = nil
	e.mu.Unlock()
	for _, f := range heed {
		f(v, err)
	}
}

// ConvertPending returns err with the late answer converted, where err is or wraps a [*PendingError] of an [Await] of T;
// any other err it returns as it is. It is for adapters that await what the client returns and convert it afterwards.
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

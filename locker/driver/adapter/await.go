package adapter

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Await runs call and returns its results. If ctx ends first, Await returns a
// [*driver.PendingError] with ctx's error; call continues in the background, and the PendingError
// reports its results. Await is for clients whose calls ignore their context. It starts a goroutine
// unless ctx can never end.
func Await[T any](ctx context.Context, call func() (T, error)) (T, error) {
	done := ctx.Done()
	if done == nil {
		return call()
	}
	if err := ctx.Err(); err != nil {
		var zero T
		return zero, driver.NotSent(err)
	}
	return await(ctx, done, call)
}

// AwaitGated is [Await] for a call that needs a place at g. The call keeps its place until it
// returns, even if its caller has left. If ctx ends before the call has a place, nothing was sent
// and the error matches [driver.ErrNotSent].
func AwaitGated[T any](ctx context.Context, g *Gate, call func() (T, error)) (T, error) {
	var zero T
	if err := g.Enter(ctx); err != nil {
		return zero, err
	}
	return AwaitEntered(ctx, g, call)
}

// AwaitEntered is [AwaitGated] for a caller that has a place at g already, which it passes on.
func AwaitEntered[T any](ctx context.Context, g *Gate, call func() (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		g.Leave()
		return zero, driver.NotSent(err)
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
	f.pending, f.answer = driver.NewPendingError(ctx.Err())
	if f.decided.Swap(true) { // both were ready: the answer counts
		return f.v, f.err
	}
	var zero T
	return zero, f.pending
}

// awaited is a call whose caller may leave before it returns.
type awaited[T any] struct {
	v        T
	err      error
	pending  *driver.PendingError // set before the caller leaves, with answer
	answer   func(v any, err error)
	decided  atomic.Bool // set by whichever comes first: the return of the call, or the leaving of its caller
	answered chan struct{}
}

func (f *awaited[T]) run(call func() (T, error)) {
	f.v, f.err = call()
	if f.decided.Swap(true) {
		f.answer(f.v, f.err)
		return
	}
	close(f.answered)
}

// ConvertPending returns err with its late answer converted, if err is or wraps a
// [*driver.PendingError] of an [Await] of T. It returns any other error unchanged. It is for
// adapters that await the client's own type and convert it afterwards: strategies expect a bool or
// a [driver.Reply] as the late answer.
func ConvertPending[T, U any](err error, convert func(T, error) (U, error)) error {
	p, ok := errors.AsType[*driver.PendingError](err)
	if !ok {
		return err
	}
	converted, answer := driver.NewPendingError(err)
	p.OnAnswer(func(v any, err error) {
		t, _ := v.(T)
		u, err := convert(t, err)
		answer(u, err)
	})
	return converted
}

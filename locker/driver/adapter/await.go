package adapter

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Await runs call and returns its results. If ctx ends first, Await returns a
// [*driver.PendingError] with ctx's error; call continues in the background, and the PendingError
// reports its results. Await then closes a late result that is an io.Closer, such as a connection.
// It is for clients whose calls ignore their context, and starts a goroutine unless ctx can never
// end.
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
		if late, ok := any(f.v).(io.Closer); ok && f.err == nil {
			_ = late.Close() // it was not used
		}
		return
	}
	close(f.answered)
}

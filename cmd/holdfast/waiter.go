package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// waiter is a request in the background.
type waiter struct {
	got        chan acquired
	subscribed chan bool
	by         locktrace.WakeReason // the last wake-up; valid once got has a value
}

type acquired struct {
	lock *locker.Lock
	err  error
}

func startWaiter(ctx context.Context, l locker.Locker, req locker.Request) *waiter {
	w := &waiter{got: make(chan acquired, 1), subscribed: make(chan bool, 16)}
	ctx = locktrace.With(ctx, &locktrace.Trace{
		Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
			select {
			case w.subscribed <- info.Subscribed:
			default:
			}
		},
		Woken: func(_ context.Context, info locktrace.WokenInfo) { w.by = info.By },
	})
	go func() {
		lock, err := l.Acquire(ctx, req)
		w.got <- acquired{lock, err}
	}()
	return w
}

// awaitSubscription waits until the waiter is subscribed to releases, or for patience. It is an
// error if the waiter does not wait any more.
func (w *waiter) awaitSubscription(patience time.Duration) (bool, error) {
	timeout := time.After(patience)
	for {
		select {
		case listens := <-w.subscribed:
			if listens {
				return true, nil
			}
		case <-timeout:
			return false, nil
		case r := <-w.got:
			if r.err == nil {
				_ = release(r.lock)
				r.err = errors.New("the server granted a lock twice")
			}
			return false, r.err
		}
	}
}

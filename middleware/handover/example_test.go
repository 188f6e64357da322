package handover_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A release passes the lock on to the next waiter of the process, without a command.
func Example() {
	server := lockertest.New() // in a program: single.New over a driver
	locks := locker.Chain(server,
		locker.Must(handover.New(handover.Config{Tenure: time.Minute})), locker.Must(retry.New(retry.Config{})))

	waits, done := make(chan struct{}), make(chan error)
	ctx := locktrace.With(context.Background(), &locktrace.Trace{
		Waiting: func(context.Context, locktrace.WaitingInfo) { close(waits) },
		Woken:   func(_ context.Context, info locktrace.WokenInfo) { fmt.Println("woken by a", info.By) },
	})
	first, err := locks.Acquire(context.Background(), locker.Request{Name: "report"})
	fmt.Println("the first holds it", err)
	go func() {
		done <- locker.Do(ctx, locks, locker.Request{Name: "report"}, func(context.Context, *locker.Lock) error {
			released := slices.ContainsFunc(server.Calls(), func(c lockertest.Call) bool { return c.Op == "release" })
			fmt.Println("the second holds it; the server was asked for a release:", released)
			return nil
		})
	}()
	<-waits
	_ = first.Release(context.Background())
	fmt.Println(<-done)
	// Output:
	// the first holds it <nil>
	// woken by a hand-over
	// the second holds it; the server was asked for a release: false
	// <nil>
}

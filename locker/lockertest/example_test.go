package lockertest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// report is the program under test: one process at a time writes the report.
func report(ctx context.Context, locks locker.Locker) (written bool, err error) {
	return locker.Try(ctx, locks, locker.Request{Name: "report"}, func(ctx context.Context, _ *locker.Lock) error {
		for range 3 {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("stopped writing: %w", err)
			}
		}
		return nil
	})
}

// A program that takes a locker.Locker is tested with one that needs no Redis.
func Example() {
	locks := lockertest.New()
	fmt.Println(report(context.Background(), locks))
	// Output: true <nil>
}

// What does the program do while another process holds the lock?
func ExampleLocker_Hold() {
	ctx, locks := context.Background(), lockertest.New()
	other := locks.Hold(locker.Request{Name: "report", Owner: "worker-2"})
	fmt.Println(report(ctx, locks))
	fmt.Println(other.Release(ctx))
	fmt.Println(report(ctx, locks))
	// Output:
	// false <nil>
	// <nil>
	// true <nil>
}

// What does the program do when it loses the lock halfway?
func ExampleLocker_Expire() {
	ctx, locks := context.Background(), lockertest.New()
	err := locker.Do(ctx, locks, locker.Request{Name: "report"}, func(ctx context.Context, _ *locker.Lock) error {
		locks.Expire("report")
		<-ctx.Done()
		return nil
	})
	fmt.Println(errors.Is(err, locker.ErrLost))
	// Output: true
}

// What does the program do when the server lost its data, and a renewal finds out?
func ExampleLocker_Forget() {
	ctx, locks := context.Background(), lockertest.New()
	lock := locker.Must(locks.Acquire(ctx, locker.Request{Name: "report"}))
	locks.Forget("report")
	fmt.Println(lock.Err())
	fmt.Println(lock.Renew(ctx, 0))
	// Output:
	// <nil>
	// holdfast: renew "report": lock was lost: its key was gone at the renewal (deleted, expired, or the server lost its data)
}

// What does the program do when the server cannot be reached?
func ExampleLocker_FailAcquire() {
	locks := lockertest.New()
	locks.FailAcquire(errors.New("connection refused"))
	fmt.Println(report(context.Background(), locks))
	// Output: false holdfast: acquire "report": connection refused
}

// A renewal whose answer did not come leaves the lease as it was.
func ExampleLocker_FailRenew() {
	ctx, locks := context.Background(), lockertest.New()
	lock := locker.Must(locks.Acquire(ctx, locker.Request{Name: "report", TTL: time.Minute}))
	before := lock.Deadline()
	locks.FailRenew(locker.ErrUnknownOutcome)
	fmt.Println(lock.Renew(ctx, time.Hour))
	fmt.Println(lock.Err(), lock.Deadline().Equal(before))
	// Output:
	// holdfast: renew "report": outcome is unknown
	// <nil> true
}

// A release whose answer did not come may have left the name held until its lease ends.
func ExampleLocker_FailRelease() {
	locks := lockertest.New()
	locks.FailRelease(locker.ErrUnknownOutcome)
	fmt.Println(report(context.Background(), locks))
	fmt.Println(report(context.Background(), locks))
	// Output:
	// true holdfast: release "report": outcome is unknown
	// false <nil>
}

// Inspect tells a test what is held.
func ExampleLocker_Inspect() {
	ctx, locks := context.Background(), lockertest.New()
	for _, reader := range []string{"r1", "r2"} {
		locker.Must(locks.Acquire(ctx, locker.Request{Name: "config", Mode: locker.Shared, Owner: reader}))
	}
	state := locker.Must(locks.Inspect(ctx, "config"))
	fmt.Println(state.Held, state.Mode, state.Holds, state.Owner)
	// Output: true shared 2 r1
}

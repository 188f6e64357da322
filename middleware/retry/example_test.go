//realtime:ok the holder ends its hold while another waits, or before

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// The zero Config waits for as long as ctx does.
func Example() {
	ctx := context.Background()
	server := lockertest.New() // in a program: single.New over a driver
	locks := locker.Chain(server, locker.Must(retry.New(retry.Config{})))

	other := server.Hold(locker.Request{Name: "report"})
	time.AfterFunc(20*time.Millisecond, func() {
		fmt.Println("the other releases")
		_ = other.Release(ctx)
	})

	err := locker.Do(ctx, locks, locker.Request{Name: "report"}, func(context.Context, *locker.Lock) error {
		fmt.Println("our turn")
		return nil
	})
	fmt.Println(err)
	// Output:
	// the other releases
	// our turn
	// <nil>
}

// The classic policy: a number of attempts, with a constant pause between them.
func Example_tries() {
	server := lockertest.New()
	locks := locker.Chain(server, locker.Must(retry.New(retry.Config{
		Policy: func() backoff.BackOff {
			return backoff.WithMaxRetries(backoff.NewConstantBackOff(10*time.Millisecond), 3)
		},
	})))

	server.Hold(locker.Request{Name: "report", Owner: "worker-2"})
	_, err := locks.Acquire(context.Background(), locker.Request{Name: "report"})

	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("still held by", held.Owner)
	}
	// Output: still held by worker-2
}

// MaxWait bounds the wait of one request. Like ctx it does not bound the hold.
func Example_maxWait() {
	synctest.Test(new(testing.T), func(*testing.T) { // in fake time
		server := lockertest.New()
		locks := locker.Chain(server, locker.Must(retry.New(retry.Config{})))

		server.Hold(locker.Request{Name: "report"})
		_, err := locks.Acquire(context.Background(), locker.Request{Name: "report", MaxWait: 2 * time.Second})

		fmt.Println(errors.Is(err, locker.ErrMaxWait), errors.Is(err, locker.ErrNotAcquired))
	})
	// Output: true true
}

// Under the ctx of a hold, an acquire of the same lock fails: it would wait for itself.
func Example_nested() {
	locks := locker.Chain(lockertest.New(), locker.Must(retry.New(retry.Config{})))
	report := locker.Request{Name: "report"}

	err := locker.Do(context.Background(), locks, report, func(ctx context.Context, _ *locker.Lock) error {
		// Somewhere below, a function locks the same name.
		return locker.Do(ctx, locks, report, func(context.Context, *locker.Lock) error { return nil })
	})
	fmt.Println(errors.Is(err, locker.ErrNested), errors.Is(err, locker.ErrNotAcquired))
	// Output: true true
}

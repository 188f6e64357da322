package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// Work that takes longer than the TTL keeps its lock.
func Example() {
	server := lockertest.New() // in a program: single.New over a driver
	locks := locker.Chain(server, locker.Must(watchdog.New(watchdog.Config{})))

	req := locker.Request{Name: "report", TTL: 30 * time.Second}
	err := locker.Do(context.Background(), locks, req, func(ctx context.Context, lock *locker.Lock) error {
		fmt.Println("working") // for hours: the lock is renewed every 9 to 10 s
		return context.Cause(ctx)
	})
	fmt.Println("error:", err)
	// Output:
	// working
	// error: <nil>
}

// MaxHold ends a hold without progress: its lease is not renewed any more, and the Lock reports the
// reason.
func Example_maxHold() {
	synctest.Test(new(testing.T), func(*testing.T) { // in fake time
		locks := locker.Chain(lockertest.New(), locker.Must(watchdog.New(watchdog.Config{MaxHold: time.Hour})))

		err := locker.Do(context.Background(), locks, locker.Request{Name: "report"}, func(ctx context.Context, _ *locker.Lock) error {
			<-ctx.Done() // the work hangs
			return nil
		})
		fmt.Println(errors.Is(err, locker.ErrLost), errors.Is(err, watchdog.ErrMaxHold))
	})
	// Output: true true
}

// Watchdog: work that takes longer than the TTL keeps its lock, and a holder that hangs loses it.
//
//	go run ./examples/watchdog                              an embedded server: nothing but Go is needed
//	go run ./examples/watchdog -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func main() { demo.Main("watchdog", run) }

const ttl = 3 * time.Second / 2

func run(ctx context.Context, all clients.All) error {
	bare, err := single.New(all[0].Driver, single.Config{Prefix: "example:"})
	if err != nil {
		return err
	}
	dog, err := watchdog.New(watchdog.Config{MaxHold: 3 * ttl})
	if err != nil {
		return err
	}
	watched := locker.Chain(bare, dog)

	// The work ends with its context, which ends with the lock.
	work := func(d time.Duration) func(context.Context, *locker.Lock) error {
		return func(ctx context.Context, _ *locker.Lock) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	err = locker.Do(ctx, bare, locker.Request{Name: "import", TTL: ttl}, work(2*ttl))
	fmt.Println("work for two TTLs, not watched: lost:", errors.Is(err, locker.ErrLost))

	var renewals atomic.Int32
	counted := locker.WithTrace(ctx, &locker.Trace{Renewed: func(context.Context, locker.RenewedInfo) { renewals.Add(1) }})
	err = locker.Do(counted, watched, locker.Request{Name: "import", TTL: ttl}, work(2*ttl))
	fmt.Println("work for two TTLs, watched: error:", err)
	fmt.Println("renewed at least four times:", renewals.Load() >= 4)

	err = locker.Do(ctx, watched, locker.Request{Name: "import", TTL: ttl}, work(time.Hour))
	fmt.Println("work that hangs, watched: ended by MaxHold:", errors.Is(err, watchdog.ErrMaxHold))
	return ctx.Err()
}

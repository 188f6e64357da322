// Package holdfast provides distributed locks on Redis and Valkey. [New] makes a Locker for most
// programs in one call:
//
//	drv, err := goredis.New(client) // or another of providers/...
//	...
//	l, err := holdfast.New(drv, holdfast.Config{})
//	...
//	req := locker.Request{Name: "invoice:42", MaxWait: 5 * time.Second}
//	err = locker.Do(ctx, l, req, func(ctx context.Context, lock *locker.Lock) error {
//		return send(ctx) // ctx ends when the lock is lost
//	})
//
// [New] combines strategies/single (one key per lock, SET NX PX), middleware/retry (waits for a
// contended lock, and is woken by its release) and strategies/watchdog (renews the lock while it is
// held). [Wrap] puts the last two around any strategy. [locker.Chain] adds further
// middleware.
//
// With the zero Config a lock has a TTL of 30 s and is renewed about every 10 s until it is
// released; an acquire waits until its ctx ends or Request.MaxWait has passed.
//
// Package locker has the guarantees of a lock, their limits, and the errors.
package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// Config configures the chain. The zero Config works.
type Config struct {
	// Watchdog configures the renewals. Default: at a third of the TTL, until the release.
	Watchdog watchdog.Config
	// Retry configures the waiting. Default: until the ctx of the acquire ends.
	Retry retry.Config
	// HandOver is for how long a process hands a lock over to its own waiters, without a command to
	// the server, before another process has its turn: see middleware/handover for the weakened
	// guarantees. A good value is 10 ms. Default: 0, every release is sent.
	HandOver time.Duration
}

// New returns a Locker over drv that waits for its turn and renews its locks. Its strategy is
// strategies/single with the zero Config; for another prefix, TTL or timeout call [Wrap]. Without a release, a
// Lock is renewed for as long as the program has it: use [locker.Do], or bound it by
// watchdog.Config.MaxHold. The Locker is safe for concurrent use and needs no closing; close drv
// when no lock is needed any more. Errors: locker.ErrInvalid.
func New(drv driver.Driver, cfg Config) (locker.Locker, error) {
	strategy, err := single.New(drv, single.Config{})
	if err != nil {
		return nil, err
	}
	return Wrap(strategy, cfg)
}

// Wrap returns a Locker that waits and renews as in [New], over any strategy: strategies/single with
// a prefix or other settings, a quorum (strategies/redlock), readers and writers
// (strategies/rwhash), a semaphore (strategies/semaphore), or one of your own. Errors:
// locker.ErrInvalid.
func Wrap(strategy locker.Locker, cfg Config) (locker.Locker, error) {
	if strategy == nil {
		return nil, argument.Invalid("holdfast.Wrap strategy", "nil", "a Locker")
	}
	renewing, err := watchdog.New(cfg.Watchdog)
	if err != nil {
		return nil, err
	}
	waiting, err := retry.New(cfg.Retry)
	if err != nil {
		return nil, err
	}
	chain := []locker.Middleware{renewing, waiting}
	if cfg.HandOver != 0 {
		passing, err := handover.New(handover.Config{Tenure: cfg.HandOver})
		if err != nil {
			return nil, err
		}
		chain = append([]locker.Middleware{passing}, chain...)
	}
	return locker.Chain(strategy, chain...), nil
}

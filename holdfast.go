// Package holdfast gives distributed locks on Redis and Valkey: the chain that most programs want, in one call.
//
// [New] puts strategies/single (one key per lock, SET NX PX), strategies/watchdog (renewing for as long as the lock is held)
// and middleware/retry (waiting, woken by releases) over a driver. For another strategy, client or middleware, put the parts
// together with [locker.Chain]; see package locker for what a lock guarantees and what it does not.
package holdfast

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// Config configures the chain. The zero Config works.
type Config struct {
	// Single configures the lock: prefix, TTL, timeouts. Default: no prefix, 30 s.
	Single single.Config
	// Watchdog configures the renewing. Default: at a third of the TTL, until the release.
	Watchdog watchdog.Config
	// Retry configures the waiting. Default: until the ctx of the acquire ends.
	Retry retry.Config
}

// New returns a Locker over drv that waits for its turn and renews what it has. A Lock that is never released is renewed for
// as long as the process lives: use [locker.Do], or bound it by watchdog.Config.MaxHold. The Locker is safe for concurrent use
// and needs no closing; close drv when no lock is needed any more. Errors: locker.ErrInvalid;
// errors.ErrUnsupported for a Single.MinReplicas that drv cannot wait for.
func New(drv driver.Driver, cfg Config) (locker.Locker, error) {
	strategy, err := single.New(drv, cfg.Single)
	if err != nil {
		return nil, err
	}
	renewing, err := watchdog.New(cfg.Watchdog)
	if err != nil {
		return nil, err
	}
	waiting, err := retry.New(cfg.Retry)
	if err != nil {
		return nil, err
	}
	return locker.Chain(strategy, waiting, renewing), nil
}

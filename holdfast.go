// Package holdfast gives distributed locks on Redis and Valkey: the chain that most programs want, in one call.
//
// [New] puts strategies/single (one key per lock, SET NX PX) and middleware/retry (waiting, woken by releases) over a
// driver. For another strategy, client or middleware, put the parts together with [locker.Chain]; see package locker for
// what a lock guarantees and what it does not.
package holdfast

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Config configures the chain. The zero Config works.
type Config struct {
	// Single configures the lock: prefix, TTL, timeouts. Default: no prefix, 30 s.
	Single single.Config
	// Retry configures the waiting. Default: until the ctx of the acquire ends.
	Retry retry.Config
}

// New returns a Locker that waits for its turn, over drv. It is safe for concurrent use and needs no closing; close drv when
// no lock is needed any more. Errors: locker.ErrInvalid.
func New(drv driver.Driver, cfg Config) (locker.Locker, error) {
	strategy, err := single.New(drv, cfg.Single)
	if err != nil {
		return nil, err
	}
	waiting, err := retry.New(cfg.Retry)
	if err != nil {
		return nil, err
	}
	return locker.Chain(strategy, waiting), nil
}

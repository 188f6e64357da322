package rwhash

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// Locker is the rwhash strategy over one driver. It implements locker.Locker and locker.Inspector.
type Locker struct {
	leases *keylock.Locker
}

var (
	_ locker.Locker    = (*Locker)(nil)
	_ locker.Inspector = (*Locker)(nil)
)

// New returns a Locker that locks through drv. Errors: ErrInvalid; errors.ErrUnsupported for a Config.MinReplicas that drv
// cannot wait for.
func New(drv driver.Driver, cfg Config) (*Locker, error) {
	turn, err := cfg.writerTurn()
	if err != nil {
		return nil, err
	}
	own := layout
	own.Extra = []string{strconv.FormatInt(turn.Milliseconds(), 10)}
	leases, err := keylock.New(drv, keylock.Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout, MinReplicas: cfg.MinReplicas, ReplicaTimeout: cfg.ReplicaTimeout,
	}, &own)
	if err != nil {
		return nil, err
	}
	return &Locker{leases}, nil
}

// Source says where the locks are kept.
func (l *Locker) Source() locktrace.Source { return l.leases.Source() }

// Acquire implements locker.Locker: one attempt to take the lock in Request.Mode, or, with Request.Resume, to take a hold
// over. The owner of a resumed hold stays: a Request.Owner that differs from the handle's is ErrInvalid.
func (l *Locker) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return l.leases.Acquire(ctx, req)
}

// Inspect implements locker.Inspector with one script, in time that grows with the number of holds. Owner, Note and Left are
// those of the hold that ends last. A key that is not a lock of this package is an error.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	return l.leases.Inspect(ctx, name, inspectScript, keylock.ReadState)
}

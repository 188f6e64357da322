// Package migrate is an example: it lets golang-migrate (github.com/golang-migrate/migrate) migrate
// a database under a Holdfast lock. Copy this file.
//
// The drivers for Cassandra, ClickHouse, Redshift, Snowflake, Spanner and others lock only within
// their process: several instances migrate at once. This one is for them, and for a Postgres behind
// a pooler without sessions.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/holdfast-go/holdfast/locker"
)

// Driver is a database.Driver with the Lock and Unlock of a Locker. Pass it to
// migrate.NewWithInstance. It keeps the Lock itself: no migration begins after a loss.
type Driver struct {
	database.Driver // its own lock is not used

	ctx    context.Context //nolint:containedctx // Lock has none
	locker locker.Locker
	req    locker.Request

	mu   sync.Mutex
	lock *locker.Lock // from Lock to Unlock
}

// New returns a Driver over d that acquires req: all instances on the same database use the same
// req.Name. l waits and renews, as holdfast.New's. The end of ctx ends a waiting Lock, but not the
// migrations.
//
// Set req.MaxWait below the LockTimeout of migrate.Migrate, by default 15 s: after LockTimeout Up
// returns, but its call of Lock goes on, and would hold the lock until the process ends.
func New(ctx context.Context, d database.Driver, l locker.Locker, req locker.Request) (*Driver, error) {
	if req.MaxWait <= 0 {
		return nil, errors.New("migrate: Request.MaxWait is required, below Migrate.LockTimeout")
	}
	return &Driver{Driver: d, ctx: ctx, locker: l, req: req}, nil
}

// Open implements database.Driver. The returned Driver has the lock of this one.
func (d *Driver) Open(url string) (database.Driver, error) {
	opened, err := d.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return New(d.ctx, opened, d.locker, d.req)
}

// Lock implements database.Driver. The error matches database.ErrLocked if another instance holds
// the lock, or this Driver does. In an outage it does not.
func (d *Driver) Lock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil {
		return database.ErrLocked
	}
	lock, err := d.locker.Acquire(d.ctx, d.req)
	if errors.Is(err, locker.ErrNotAcquired) {
		return fmt.Errorf("%w: %w", database.ErrLocked, err)
	}
	d.lock = lock
	return err
}

// Unlock implements database.Driver. The error matches locker.ErrLost if the lock was lost since
// Lock. Up returns it too.
func (d *Driver) Unlock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lock := d.lock
	if lock == nil {
		return database.ErrNotLocked
	}
	d.lock = nil
	return lock.Release(d.ctx)
}

// SetVersion implements database.Driver. Migrate calls it with dirty before each migration: if the
// lock has been lost, SetVersion returns the loss then, and the migration does not begin. It does
// store the end of the migration during which the lock was lost.
func (d *Driver) SetVersion(version int, dirty bool) error {
	if dirty {
		if err := d.lost(); err != nil {
			return err
		}
	}
	return d.Driver.SetVersion(version, dirty)
}

// Drop implements database.Driver. It drops nothing if the lock has been lost.
func (d *Driver) Drop() error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.Drop()
}

func (d *Driver) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil { // the program calls it without Migrate's Lock
		return nil
	}
	return d.lock.Err()
}

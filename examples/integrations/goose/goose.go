// Package goose is an example: it lets goose (github.com/pressly/goose) migrate a database under a
// Holdfast lock. Copy this file.
//
// goose has locks of its own for Postgres and MySQL. This one is for other databases, for a
// Postgres behind a pooler without sessions, and for one lock around migrations of several
// databases.
//
// If the program calls Up itself, it needs no adapter, and a loss can end the migration:
//
//	err := locker.Do(ctx, l, req, func(ctx context.Context, _ *locker.Lock) error {
//		_, err := provider.Up(ctx) // ctx ends when the lock is lost
//		return err
//	})
package goose

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3/lock"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/named"
)

// Locker is for goose.WithLocker. It is safe for concurrent use, by several Providers too.
type Locker struct {
	locks *named.Mutex
	name  string
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker of name: all instances on the same database lock the same name. l waits and
// renews, as holdfast.New's.
//
// Set req.MaxWait to as long as the migrations of another instance may take, such as goose's own 5
// minutes: zero waits until the ctx of Up ends, in an outage of Redis too. req must not have a
// Name.
func New(l locker.Locker, name string, req locker.Request) (*Locker, error) {
	locks, err := named.New(l, req)
	if err != nil {
		return nil, err
	}
	return &Locker{locks: locks, name: name}, nil
}

// Lock implements lock.Locker. goose reads the pending migrations after it: an instance that has
// waited finds nothing to do. The database is not used.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	return l.locks.Lock(ctx, l.name)
}

// Unlock implements lock.Locker. The error matches locker.ErrLost if the lock was lost since Lock,
// and Up returns it: another instance may have migrated at the same time.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	return l.locks.Unlock(ctx, l.name)
}

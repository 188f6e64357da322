// Package synclocker is an example: it makes a sync.Locker of a Holdfast lock, for libraries with
// such a parameter. Copy this file.
//
// sync.Locker has no errors and no context: a failed acquire, a lost lock and a failed release go
// unreported, and no wait can be ended. In code of your own use [locker.Do]: it reports all of
// these, and its ctx ends when the lock is lost.
package synclocker

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/named"
)

// Mutex is a sync.Locker that excludes other goroutines and other processes. Like a sync.Mutex it
// is not reentrant, and any goroutine may Unlock it.
type Mutex struct {
	ctx     context.Context //nolint:containedctx // Lock has none
	locks   *named.Mutex
	name    string
	onError func(error)
}

var _ sync.Locker = (*Mutex)(nil)

// New returns a Mutex of name. l waits and renews, as holdfast.New's. req must not have a Name.
//
// Lock waits until it has the lock, in an outage of Redis too, unless ctx or req.MaxWait ends it.
// Errors are passed to onError, in the goroutine of Lock or Unlock:
//
//   - From Lock: the lock was not acquired. Lock must not return then, so it panics with the error
//     after onError, unless onError exits the process, or the goroutine by runtime.Goexit.
//   - From Unlock: the error matches [locker.ErrLost] if the lock was lost since Lock: another
//     process may have worked at the same time. Unlock returns after onError.
func New(ctx context.Context, l locker.Locker, name string, req locker.Request, onError func(error)) (*Mutex, error) {
	if onError == nil {
		return nil, errors.New("synclocker: onError is required: nothing else reports errors")
	}
	locks, err := named.New(l, req)
	if err != nil {
		return nil, err
	}
	return &Mutex{ctx: ctx, locks: locks, name: name, onError: onError}, nil
}

// Lock implements sync.Locker. It returns when it has the lock, and never without.
func (m *Mutex) Lock() {
	if err := m.locks.Lock(m.ctx, m.name); err != nil {
		m.onError(err)
		panic(err)
	}
}

// Unlock implements sync.Locker.
func (m *Mutex) Unlock() {
	if err := m.locks.Unlock(m.ctx, m.name); err != nil {
		m.onError(err)
	}
}

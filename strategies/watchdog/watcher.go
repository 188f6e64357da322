package watchdog

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// watcher is a Locker whose locks are renewed.
type watcher struct {
	inner     locker.Locker
	scheduler *scheduler
}

// Acquire implements locker.Locker.
func (w *watcher) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if w.inner == nil {
		return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.InvalidError{
			What: "Locker that watchdog wraps", Got: "nil", Allowed: "a Locker",
		}}
	}
	lock, err := w.inner.Acquire(ctx, req)
	if err == nil {
		w.watch(lock)
	}
	return lock, err
}

// Unwrap returns the wrapped Locker.
func (w *watcher) Unwrap() locker.Locker { return w.inner }

// watch begins to renew lock. A lock that never ends needs no renewals; one without a Lease or a
// TTL, as a test double may return, can have none.
func (w *watcher) watch(lock *locker.Lock) {
	if lock == nil || lock.Deadline().IsZero() || lock.TTL() <= 0 {
		return
	}
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		if inner == nil {
			return nil
		}
		l := &watchedLease{Lease: inner, watcher: w, lock: lock.Hold(), index: notQueued}
		w.scheduler.add(l)
		return l
	})
}

// watchedLease is the Lease of a renewed lock. The scheduler's mutex guards all that changes.
type watchedLease struct {
	lease.Lease
	watcher *watcher
	lock    lease.Hold

	limited  *limited // nil: neither MaxHold nor MaxRenewals is set
	due      instant  // when the next renewal begins
	index    int32    // in the scheduler's heap; notQueued while a renewal is in flight, and after the end
	fails    uint8    // failed renewals since the last successful one
	released bool
}

// limited is the state for MaxHold and MaxRenewals.
type limited struct {
	began    instant
	renewals int
}

// notQueued is the index of a lease outside the heap.
const notQueued = -1

// Do implements lease.Lease. Before a release is sent, the renewals end.
func (l *watchedLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRelease || op.Kind == lease.OpUndo {
		l.watcher.scheduler.remove(l)
	}
	return l.Lease.Do(ctx, op)
}

// Unwrap returns the wrapped Lease.
func (l *watchedLease) Unwrap() lease.Lease { return l.Lease }

// untilRenewal returns how long from now the renewal of the lock can wait: until a third of its
// lease is over.
func untilRenewal(lock lease.Hold, now time.Time) time.Duration {
	ttl, left := lock.TTL(), lock.Deadline().Sub(now)
	return max(left-ttl/3*2, min(left, ttl)/3, 0)
}

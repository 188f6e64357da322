package retry

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// wakingLease wakes the waiters of its own process when the lock is released or converted. A
// pub/sub message takes a round trip more, and a foreign channel may not be readable at all.
type wakingLease struct {
	lease.Lease
	queues *queues
	name   string
}

// notifyReleases wraps the Lease of a lock that was just acquired. A Lock without one, as a test
// double may return, stays as it is.
func (qs *queues) notifyReleases(lock *locker.Lock) {
	if lock == nil {
		return
	}
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		if inner == nil {
			return nil
		}
		return &wakingLease{inner, qs, lock.Name()}
	})
}

// Do implements lease.Lease.
func (l *wakingLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	term, err := l.Lease.Do(ctx, op)
	if op.Kind == lease.OpRelease || op.Kind == lease.OpConvert {
		l.queues.released(l.name)
	}
	return term, err
}

// Unwrap lets renewals be sent in batches: this wrapper leaves them alone.
func (l *wakingLease) Unwrap() lease.Lease { return l.Lease }

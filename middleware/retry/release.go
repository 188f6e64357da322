package retry

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// wakingLease wakes the waiters of its own process after a release or a conversion. A pub/sub message
// takes another round trip, and another library's channel may be unreadable.
type wakingLease struct {
	lease.Lease
	queues *queues
	lock   lease.Hold
}

// wakeOnRelease makes a new lock's Lease a wakingLease. A Lock without a Lease, as of a test
// double, stays as it is. alone: nobody else can hold the lock. It is exclusive, and not one of a
// semaphore's several holds.
func (r *retrier) wakeOnRelease(lock *locker.Lock) (alone bool) {
	alone = lock.Mode() == locker.Exclusive
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		if inner == nil {
			return nil
		}
		alone = alone && lease.TraitsOf(inner).Permits <= 1
		return &wakingLease{inner, r.queues, lock.Hold()}
	})
	return alone
}

// Do implements lease.Lease.
func (l *wakingLease) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	var given *baton
	if op.Kind == lease.OpRelease {
		given = l.chooseNext(&op)
	}
	result, err := l.Lease.Do(ctx, op)
	if op.Kind == lease.OpRelease || op.Kind == lease.OpConvert {
		l.released(op, result, err, given)
	}
	return result, err
}

// Unwrap returns the strategy's Lease.
func (l *wakingLease) Unwrap() lease.Lease { return l.Lease }

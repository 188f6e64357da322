package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// reacquire releases the hold, and acquires the lock in the other mode.
func reacquire(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
	if _, err := l.Lease.Do(ctx, lease.Op{Kind: lease.OpRelease}); err != nil {
		return lease.Term{}, err
	}
	req := l.req
	req.Mode, req.NoWait = op.Mode, true
	lock, err := l.locker.Acquire(ctx, req)
	if err != nil {
		return lease.Term{}, err
	}
	lock.Hold().Wrap(func(next lease.Lease) lease.Lease {
		l.Lease = next
		return next
	})
	return lease.Term{Deadline: lock.Deadline(), Fence: lock.Fence()}, nil
}

// awaitConversion converts when the other holders have left.
func awaitConversion(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
	for {
		term, err := l.Lease.Do(ctx, op)
		if !errors.Is(err, locker.ErrNotAcquired) || ctx.Err() != nil {
			return term, err
		}
		<-time.After(100 * time.Millisecond)
	}
}

// The mutants are strategies/rwhash with other conversions.
func TestMutantsThatConvert(t *testing.T) {
	t.Parallel()
	m, sound := mutants{T: t}, rwhashWith(t, "", "")
	flawed := func(convert operates) *Harness {
		h := rwhashWith(t, "", "")
		h.Around = operating(converting(convert))
		return h
	}
	m.add("a conversion that releases and acquires again", flawed(reacquire), sound, "a downgrade lets no writer in")
	m.add("an upgrade that waits for other readers", flawed(awaitConversion), sound,
		"two upgraders do not wait for each other", "only the sole reader upgrades")
	m.add("a conversion that renews", flawed(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
		if term, err := l.Lease.Do(ctx, op); err != nil {
			return term, err
		}
		return l.Lease.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: l.req.TTL})
	}), sound, "a conversion keeps the lease")
	m.convict()
}

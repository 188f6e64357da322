package locker

import (
	"context"
	"time"
)

// Batched is implemented by a Lease whose renewals can travel with those of other leases, in one
// round trip.
type Batched interface {
	Lease
	// Batch returns a comparable value that is equal (==) for leases that can be renewed in one
	// round trip, such as those of one driver. nil: this one is renewed alone.
	Batch() any
	// RenewBatch renews leases whose Batch is the receiver's, and fills in the Term and Err of
	// each. It sends each at most once, and bounds its waiting for the answers.
	RenewBatch(ctx context.Context, renewals []Renewal)
}

// Renewal is one lease's part of a batch.
type Renewal struct {
	Lease Lease // one that is Batched, not its wrapper
	TTL   time.Duration

	Term Term
	Err  error
}

// BatchOf returns what locks that can be renewed together have in common: it is equal (==) for
// them. nil: lock is renewed alone.
func BatchOf(lock *Lock) any {
	_, batch := lock.batched()
	return batch
}

// batched finds the lease that can be renewed together with others, behind the wrappers that leave
// renewals alone.
func (l *Lock) batched() (Batched, any) {
	if !l.valid() {
		return nil, nil
	}
	if lease, ok := behind[Batched](l.current()); ok {
		return lease, lease.Batch()
	}
	return nil, nil
}

// RenewBatch does to each lock what Renew(ctx, 0) does, and returns the errors in the order of the
// locks. Those that share the first one's batch ([BatchOf]) are sent together, once; the others are
// renewed alone. It waits for no callback: see [RenewAlone]. It is for middleware.
func RenewBatch(ctx context.Context, locks []*Lock) []error {
	errs := make([]error, len(locks))
	var (
		sender   Batched
		common   any
		renewals = make([]Renewal, 0, len(locks))
		together = make([]int, 0, len(locks)) // the indexes of the locks in renewals
	)
	for i, l := range locks {
		lease, batch := l.batched()
		if sender == nil {
			sender, common = lease, batch
		}
		switch {
		case batch == nil || batch != common || l.Err() != nil:
			errs[i] = RenewAlone(ctx, l)
		default:
			renewals, together = append(renewals, Renewal{Lease: lease, TTL: l.TTL()}), append(together, i)
		}
	}
	if len(renewals) == 0 {
		return errs
	}
	sender.RenewBatch(ctx, renewals)
	for n, i := range together {
		l, r := locks[i], renewals[n]
		ended, err := l.apply(Op{Kind: OpRenew, TTL: r.TTL}, r.Term, r.Err)
		errs[i] = opError("renew", l.Name(), err)
		l.renewed(r.TTL, errs[i])
		l.reportApart(ended)
	}
	return errs
}

// RenewAlone is lock.Renew(ctx, 0) that waits for no callback. Trace.Renewed and, if the renewal
// found the lock lost, the callbacks of its end run in order in a goroutine of the lock's own. A
// callback that blocks delays the reports of this lock, and no renewal. If more than 64 reports
// wait, the oldest that report only a renewal are dropped. It is for middleware.
func RenewAlone(ctx context.Context, lock *Lock) error {
	ttl := lock.TTL()
	ended, err := lock.do(ctx, "renew", Op{Kind: OpRenew, TTL: ttl}, nil)
	lock.renewed(ttl, err)
	lock.reportApart(ended)
	return err
}

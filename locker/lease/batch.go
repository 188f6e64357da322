package lease

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

// Renewal is the renewal of one Lease in a batch.
type Renewal struct {
	Lease Lease         // the Batched itself, not a wrapper of it
	TTL   time.Duration // the new lease, from the renewal on

	Term Term  // the result, if Err is nil
	Err  error // as of Lease.Do
}

// RenewBatch renews holds as Hold.Renew does, and returns the errors in their order. The holds with
// the Batch of the first that has one are renewed together, in one round trip; the others alone.
func RenewBatch(ctx context.Context, holds []Hold) []error {
	errs := make([]error, len(holds))
	var (
		sender   Batched
		common   any
		renewals = make([]Renewal, 0, len(holds))
		together = make([]int, 0, len(holds)) // the indexes of the holds in renewals
	)
	for i, h := range holds {
		lease, batch := h.Batched()
		if sender == nil {
			sender, common = lease, batch
		}
		switch {
		case batch == nil || batch != common || h.Err() != nil:
			errs[i] = h.Renew(ctx)
		default:
			renewals, together = append(renewals, Renewal{Lease: lease, TTL: h.TTL()}), append(together, i)
		}
	}
	if len(renewals) == 0 {
		return errs
	}
	sender.RenewBatch(ctx, renewals)
	for n, i := range together {
		errs[i] = holds[i].Renewed(renewals[n])
	}
	return errs
}

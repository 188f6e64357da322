package keylock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// renewalBatch is equal (==) for holds that are renewed in one round trip: they share a driver and
// the timeout.
type renewalBatch struct {
	drv     driver.Driver
	timeout time.Duration
}

// Batch implements lease.Batched. WAIT speaks for one call of a connection, so renewals that wait
// for replicas are sent alone.
func (h *keyHold) Batch() any {
	drv := h.l.drv
	if _, ok := drv.(driver.Batcher); !ok || h.l.cfg.MinReplicas > 0 || !reflect.TypeOf(drv).Comparable() {
		return nil
	}
	return renewalBatch{drv, h.batchTimeout()}
}

// batchTimeout leaves time for resends: a batch is answered when the slowest node of a cluster has
// answered.
func (h *keyHold) batchTimeout() time.Duration { return min(h.timeout, h.ttl/6) }

// RenewBatch implements lease.Batched.
func (h *keyHold) RenewBatch(ctx context.Context, renewals []lease.Renewal) {
	holds, calls := make([]*keyHold, len(renewals)), make([]driver.Call, len(renewals))
	for i, r := range renewals {
		holds[i] = r.Lease.(*keyHold) //nolint:errcheck // no other type has such a Batch
		call := holds[i].renewCall(r.TTL)
		calls[i] = driver.Call{Script: call.script, Keys: call.keys, Args: call.args}
	}
	bound := &driver.Bounded{Urgent: true}
	bound.Start(ctx, h.batchTimeout())
	defer bound.Stop()
	sent := time.Now()
	for i, result := range evalMany(bound, h.l.drv, calls) {
		r := &renewals[i]
		r.Term, r.Err = holds[i].renewed(result, sent, r.TTL.Truncate(time.Millisecond))
	}
}

var errResultCount = errors.New("the driver returned another number of results than it was given calls")

// evalMany sends calls in one round trip, and returns as many results.
func evalMany(ctx context.Context, drv driver.Driver, calls []driver.Call) []driver.Result {
	results := drv.(driver.Batcher).EvalMany(ctx, calls) //nolint:errcheck // Batch checks it
	if len(results) == len(calls) {
		return results
	}
	results = make([]driver.Result, len(calls)) // it is not known which is whose
	for i := range results {
		results[i].Err = errResultCount
	}
	return results
}

// renewed returns the term of a renewal that was sent once.
func (h *keyHold) renewed(result driver.Result, sent time.Time, ttl time.Duration) (lease.Term, error) {
	switch err := result.Err; {
	case err == nil:
	case driver.NotExecuted(err):
		return lease.Term{}, lostIfOtherType(err)
	default:
		return lease.Term{}, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	if _, err := h.heldStatus(result.Reply, replyYes, replyNo); err != nil {
		return lease.Term{}, err
	}
	return lease.Term{Deadline: h.extend(deadlineOf(sent, ttl))}, nil
}

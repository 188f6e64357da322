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
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
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
	if h.changing() {
		return nil // renew finishes the change
	}
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
	bound.Start(ctx, time.Now().Add(h.batchTimeout()))
	defer bound.Stop()
	sent := time.Now()
	for i, result := range resolve.EvalMany(bound, h.l.drv, calls) {
		r := &renewals[i]
		ttl := r.TTL.Truncate(time.Millisecond)
		r.Term, r.Err = holds[i].renewed(result, sent, ttl)
		if errors.Is(r.Err, locker.ErrLost) && holds[i].changedFrom(calls[i].Args[0]) {
			r.Term, r.Err = holds[i].renew(ctx, ttl)
		}
	}
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

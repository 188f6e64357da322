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

// batch is what holds have in common that are renewed in one round trip: one timeout bounds them all.
type batch struct {
	drv     driver.Driver
	timeout time.Duration
}

// Batch implements lease.Batched. WAIT speaks for one call of a connection, so that what waits for replicas travels alone.
func (h *hold) Batch() any {
	if _, ok := h.drv.(driver.Batcher); !ok || h.replicas > 0 || !reflect.TypeOf(h.drv).Comparable() {
		return nil
	}
	return batch{h.drv, h.batchTimeout()}
}

// errOdd: a driver breaks the contract of driver.Batcher.
var errOdd = errors.New("the driver returned another number of results than it was given calls")

// batchTimeout leaves time for repetitions: a batch is answered when the slowest of a cluster's nodes has answered.
func (h *hold) batchTimeout() time.Duration { return min(h.timeout, h.ttl/6) }

// RenewBatch implements lease.Batched. What shares a batch is a hold over a driver.Batcher.
func (h *hold) RenewBatch(ctx context.Context, renewals []lease.Renewal) {
	holds, calls := make([]*hold, len(renewals)), make([]driver.Call, len(renewals))
	for i, r := range renewals {
		holds[i] = r.Lease.(*hold) //nolint:errcheck // nothing else has such a batch
		cmd := holds[i].command(h.layout.Renew, holds[i].fenced(), holds[i].value, millis(r.TTL), holds[i].kept(r.TTL))
		calls[i] = driver.Call{Script: cmd.script, Keys: cmd.keys, Args: cmd.args}
	}
	bound := &driver.Bounded{Urgent: true}
	bound.Start(ctx, h.batchTimeout())
	defer bound.Stop()
	sent := time.Now()
	results := h.drv.(driver.Batcher).EvalMany(bound, calls) //nolint:errcheck // Batch has looked
	if len(results) != len(calls) {                          // nobody knows whose they are
		results = make([]driver.Result, len(calls))
		for i := range results {
			results[i].Err = errOdd
		}
	}
	for i, result := range results {
		r := &renewals[i]
		switch err := result.Err; {
		case err == nil:
			r.Term, r.Err = holds[i].renewed(result.Reply, sent, r.TTL.Truncate(time.Millisecond))
		case driver.NotExecuted(err):
			r.Err = gone(err)
		default:
			r.Err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
		}
	}
}

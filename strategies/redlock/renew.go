package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// renew extends the lease at a quorum, and restores the lock at nodes without it.
func (h *heldLock) renew(ctx context.Context, ttl time.Duration) (lease.Result, error) {
	if err := h.turn.take(ctx); err != nil {
		return lease.Result{}, err
	}
	defer h.turn.pass()
	h.mu.Lock()
	began, toAsk := time.Now(), h.leaseToAsk(ttl)
	h.renewed = time.Time{}
	h.unlock()
	answers, err := h.each(ctx, h.attemptTimeout(),
		func(p *nodeLock, op *operation) error { return p.renew(toAsk, began, op.left) })
	renewed := answers.done >= h.quorum
	if renewed && h.moveDeadline(began, ttl) {
		return h.result(), nil
	}
	err = h.missed(answers, err)
	if renewed && !errors.Is(err, locker.ErrNotHeld) {
		err = fmt.Errorf("the quorum has ended since: %w", err)
	}
	h.mu.Lock()
	defer h.unlock()
	if h.phase == holding {
		h.restore(ttl, false) // the quorum may need it
	}
	return lease.Result{}, err
}

func (h *heldLock) result() lease.Result {
	h.mu.Lock()
	defer h.unlock()
	return lease.Result{Deadline: h.deadline}
}

// moveDeadline moves the Deadline to the end of the quorum that granted the renewal begun at began,
// and restores the lock at nodes without it. It reports false if the quorum has ended since, or the
// Deadline has passed: the lock is lost then.
func (h *heldLock) moveDeadline(began time.Time, ttl time.Duration) bool {
	h.mu.Lock()
	defer h.unlock()
	defer h.watchLoss()
	v := h.view()
	end, ok := v.end()
	if !ok || v.renewedSince(began) < h.quorum || h.phase != holding || !h.beforeDeadline() {
		return false
	}
	h.deadline = movedDeadline(h.deadline, end, began.Add(ttl))
	h.renewed = began
	h.clearExpired(began)
	h.restore(ttl, true)
	return true
}

// clearExpired clears the expired marks if the successful renewal begun at began proves that no
// other client resumed the hold. A mark set less than an AttemptTimeout before began stays: a
// resume may have been in flight then. The mutex is held.
func (h *heldLock) clearExpired(began time.Time) {
	if !h.view().noneTookOver(began) {
		return
	}
	for i := range h.slots {
		if s := &h.slots[i]; began.Sub(s.expired) >= h.attemptTimeout() {
			s.expired = time.Time{}
		}
	}
}

package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// convert changes the mode at a quorum, one conversion at a time. No part is released by it: a part
// that is shared, or may be, counts for a shared hold, and one that is exclusive is more than it
// needs.
func (h *hold) convert(ctx context.Context, to locker.Mode) (lease.Term, error) {
	if err := h.takeTurn(ctx); err != nil {
		return lease.Term{}, err
	}
	defer h.passTurn()
	if to == locker.Exclusive {
		return h.upgrade(ctx)
	}
	return h.downgrade(ctx)
}

// downgrade gives the exclusive hold up, whatever its outcome. What it misses is converted again
// with the next renewal.
func (h *hold) downgrade(ctx context.Context) (lease.Term, error) {
	h.mu.Lock()
	before := h.mode
	h.mode = locker.Shared
	h.mu.Unlock()
	t, ended := h.each(ctx, h.apart(func(m *member, p *part, r *round) error { return h.convertPart(m, p, locker.Shared, r) }))
	if t.done >= h.quorum {
		h.mu.Lock()
		defer h.mu.Unlock()
		return lease.Term{Deadline: h.deadline}, nil
	}
	err := h.missed(t, ended)
	switch {
	case errors.Is(err, locker.ErrNotHeld):
		return lease.Term{}, err
	case t.unsupported(len(h.nodes)-h.quorum) && h.revert(before):
		return lease.Term{}, err
	}
	return lease.Term{}, fmt.Errorf("%w: others may share it: %w", locker.ErrUnknownOutcome, err)
}

// revert makes the hold again what it was before a conversion that cannot be, unless it would be
// lost by that.
func (h *hold) revert(mode locker.Mode) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.mode
	h.mode = mode
	if _, ok := h.view().lossTime(); !ok {
		h.mode = now
		return false
	}
	h.watch()
	return true
}

// upgrade needs a quorum that is known to be exclusive until the Deadline, with one fencing token.
// One that misses it is taken back where it succeeded, or may have.
func (h *hold) upgrade(ctx context.Context) (lease.Term, error) {
	h.mu.Lock()
	end := time.Now().Add(h.timeout) // of all of it
	already, deadline := h.mode == locker.Exclusive, h.deadline
	h.upgrading = !already
	h.mu.Unlock()
	t, ended := h.each(ctx, h.apart(func(m *member, p *part, r *round) error { return h.convertPart(m, p, locker.Exclusive, r) }))
	if already {
		if t.done < h.quorum {
			return lease.Term{}, h.missed(t, ended)
		}
		return lease.Term{Deadline: deadline}, nil
	}
	var fence int64
	if t.done >= h.quorum && h.fixed != nil {
		if fence = h.highest(); fence > 0 {
			t, ended = h.eachFor(ctx, time.Until(end), h.apart(func(m *member, p *part, r *round) error {
				return h.raiseUpgraded(m, p, fence, deadline, r)
			}))
		}
	}
	won := t.done >= h.quorum && h.becomes(locker.Exclusive, fence, deadline)

	h.mu.Lock()
	h.upgrading = false
	for i := range h.members {
		h.comply(&h.members[i], h.members[i].part)
	}
	h.watch()
	term := lease.Term{Deadline: h.deadline, Fence: h.fence}
	h.mu.Unlock()
	if won {
		return term, nil
	}
	h.awaitMended(ctx, time.Until(end))
	err := h.missed(t, ended)
	if t.done >= h.quorum && !errors.Is(err, locker.ErrNotHeld) {
		err = fmt.Errorf("they did not stay exclusive until the Deadline: %w", err)
	}
	if held := t.contended(); held > 0 && t.done+held >= h.quorum && !errors.Is(err, locker.ErrNotHeld) {
		return lease.Term{}, t.contention(h.req.Name, h.quorum, h.cfg.WakeJitter)
	}
	return lease.Term{}, err
}

// awaitMended waits until so few parts are left exclusive by an upgrade that failed that others
// find a quorum they can share, for at most patience.
func (h *hold) awaitMended(ctx context.Context, patience time.Duration) {
	h.mu.Lock()
	r := newRound(len(h.members), h.quorum)
	for i := range h.members {
		switch p := h.members[i].part; {
		case p == nil || p.converting == nil && !p.exclusive && !p.unsure:
			r.errs[i] = nil
			r.done++
		case p.converting != nil:
			r.errs[i] = errUnanswered
			r.pending++
			mended := p.converting
			go func() {
				for mended != nil { // behind the upgrade itself comes the taking back
					select {
					case <-mended:
					case <-r.gone:
						return
					}
					h.mu.Lock()
					mended = p.converting
					h.mu.Unlock()
				}
				r.answer(i, nil)
			}()
		}
	}
	h.mu.Unlock()
	r.begin()
	_ = r.wait(ctx, patience, 0)
	r.stopWaiting()
}

// becomes makes the hold one of that mode and fence, unless no quorum of such parts lasts until
// deadline.
func (h *hold) becomes(mode locker.Mode, fence int64, deadline time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	modeBefore, fenceBefore := h.mode, h.fence
	h.mode, h.fence = mode, max(h.fence, fence)
	if h.phase == holding && h.view().lasts(deadline) {
		return true
	}
	h.mode, h.fence = modeBefore, fenceBefore
	return false
}

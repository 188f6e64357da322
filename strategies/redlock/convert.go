package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// convert changes the mode at a quorum, one conversion at a time. It releases no node lock: all
// count for a shared lock, whatever their mode.
func (h *heldLock) convert(ctx context.Context, to locker.Mode) (lease.Result, error) {
	if err := h.turn.take(ctx); err != nil {
		return lease.Result{}, err
	}
	defer h.turn.pass()
	if to == locker.Exclusive {
		return h.upgrade(ctx)
	}
	return h.downgrade(ctx)
}

// downgrade gives up exclusivity, whatever its outcome. The next renewal converts missed nodes.
func (h *heldLock) downgrade(ctx context.Context) (lease.Result, error) {
	h.mu.Lock()
	before := h.mode
	h.mode = locker.Shared
	h.unlock()
	answers, err := h.each(ctx, h.attemptTimeout(), converting(locker.Shared))
	if answers.done >= h.quorum {
		return h.result(), nil
	}
	err = h.missed(answers, err)
	if errors.Is(err, locker.ErrNotHeld) || answers.unsupported() && h.revertMode(before) {
		return lease.Result{}, err
	}
	return lease.Result{}, fmt.Errorf("%w: others may share it: %w", locker.ErrUnknownOutcome, err)
}

// converting returns the function that converts one node lock, for each.
func converting(to locker.Mode) func(*nodeLock, *operation) error {
	return func(p *nodeLock, op *operation) error { return p.convert(to, op.left) }
}

// revertMode restores the mode from before an unsupported conversion, unless the lock would then be
// lost.
func (h *heldLock) revertMode(mode locker.Mode) bool {
	h.mu.Lock()
	defer h.unlock()
	now := h.mode
	h.mode = mode
	if _, ok := h.view().lossTime(); !ok {
		h.mode = now
		return false
	}
	h.watchLoss()
	return true
}

// upgrade needs a quorum known to be exclusive until the Deadline, with one fencing token.
// Otherwise it makes upgraded node locks, and those of unknown mode, shared again.
func (h *heldLock) upgrade(ctx context.Context) (lease.Result, error) {
	end := time.Now().Add(h.attemptTimeout()) // of all steps
	h.mu.Lock()
	deadline, already := h.deadline, h.mode == locker.Exclusive // the node locks are to last until then
	h.upgrading = !already
	h.unlock()
	answers, err := h.each(ctx, h.attemptTimeout(), converting(locker.Exclusive))
	if already {
		if answers.done < h.quorum {
			return lease.Result{}, h.missed(answers, err)
		}
		return lease.Result{Deadline: deadline}, nil
	}
	fence := h.fenceToRaise(answers)
	if fence > 0 {
		answers, err = h.each(ctx, time.Until(end), func(p *nodeLock, op *operation) error {
			return p.upgradeAndRaise(fence, deadline, op.left)
		})
	}
	result, upgraded := h.endUpgrade(answers, fence, deadline)
	if upgraded {
		return result, nil
	}
	h.awaitShared(ctx, time.Until(end))
	return lease.Result{}, answers.upgradeVerdict(h.missed(answers, err))
}

// fenceToRaise returns the fencing token for the nodes after an upgrade of a quorum: the highest of
// the exclusive node locks. It is 0 if there is none to raise.
func (h *heldLock) fenceToRaise(answers *nodeAnswers) int64 {
	if answers.done < h.quorum || h.fenceKnown == nil {
		return 0
	}
	h.mu.Lock()
	defer h.unlock()
	return h.view().highestExclusive()
}

// endUpgrade ends an upgrade, and reports whether the lock is exclusive now. Node locks of another
// mode are converted in the background.
func (h *heldLock) endUpgrade(answers *nodeAnswers, fence int64, deadline time.Time) (result lease.Result, upgraded bool) {
	h.mu.Lock()
	defer h.unlock()
	upgraded = answers.done >= h.quorum && h.becomeExclusive(fence, deadline)
	h.upgrading = false
	for i := range h.slots {
		if p := h.slots[i].held; p != nil {
			p.ensureMode()
		}
	}
	h.watchLoss()
	return lease.Result{Deadline: h.deadline, Fence: h.fence}, upgraded
}

// becomeExclusive makes the lock exclusive, with fence as its token, if a quorum of such node locks
// lasts until deadline. The mutex is held.
func (h *heldLock) becomeExclusive(fence int64, deadline time.Time) bool {
	modeBefore, fenceBefore := h.mode, h.fence
	h.mode, h.fence = locker.Exclusive, max(h.fence, fence)
	if h.phase == holding && h.view().lasts(deadline) {
		return true
	}
	h.mode, h.fence = modeBefore, fenceBefore
	return false
}

// awaitShared waits until a quorum of nodes is shared again after a failed upgrade, for at most
// patience.
func (h *heldLock) awaitShared(ctx context.Context, patience time.Duration) {
	op, held := newOperation(len(h.slots), h.quorum), make([]*nodeLock, len(h.slots))
	h.mu.Lock()
	for i := range h.slots {
		op.expect(i)
		held[i] = h.slots[i].held
	}
	h.unlock()
	op.start(func(i int) error {
		p := held[i]
		if p == nil || p.claim(&p.converting, op.left) != nil {
			return nil
		}
		h.mu.Lock() // no upgrade of it is in flight any more, nor the downgrade after one
		defer h.unlock()
		unclaim(&p.converting)
		return nil
	})
	_ = op.wait(ctx, patience, 0)
}

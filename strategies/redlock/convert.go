package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// convert changes the mode at a quorum, one conversion at a time. No part is released by it: a part that is shared, or may be,
// counts for a shared hold, and one that is exclusive is more than it needs.
func (h *hold) convert(ctx context.Context, to locker.Mode) (locker.Term, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return locker.Term{}, ended(ctx)
	}
	if to == locker.Exclusive {
		return h.upgrade(ctx)
	}
	return h.downgrade(ctx)
}

// downgrade gives the exclusive hold up, whatever its outcome. What it misses is converted again with the next renewal.
func (h *hold) downgrade(ctx context.Context) (locker.Term, error) {
	h.mu.Lock()
	before := h.mode
	h.mode = locker.Shared
	h.mu.Unlock()
	t, ended := h.each(ctx, h.apart(func(m *member, p *part) error { return h.convertPart(m, p, locker.Shared) }))
	if t.done >= h.quorum {
		h.mu.Lock()
		defer h.mu.Unlock()
		return locker.Term{Deadline: h.deadline}, nil
	}
	err := h.missed(t, ended)
	switch {
	case errors.Is(err, locker.ErrNotHeld):
		return locker.Term{}, err
	case t.unsupported(len(h.nodes)-h.quorum) && h.revert(before):
		return locker.Term{}, err
	}
	return locker.Term{}, fmt.Errorf("%w: others may share it: %w", locker.ErrUnknownOutcome, err)
}

// revert makes the hold again what it was before a conversion that cannot be, unless it would be lost by that.
func (h *hold) revert(mode locker.Mode) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.mode
	h.mode = mode
	if _, ok := h.end(); !ok {
		h.mode = now
		return false
	}
	h.watch()
	return true
}

// upgrade needs a quorum that is known to be exclusive until the Deadline, with one fencing token. One that misses it is
// taken back where it succeeded, or may have.
func (h *hold) upgrade(ctx context.Context) (locker.Term, error) {
	h.mu.Lock()
	already, deadline := h.mode == locker.Exclusive, h.deadline
	h.upgrading = !already
	h.mu.Unlock()
	t, ended := h.each(ctx, h.apart(func(m *member, p *part) error { return h.convertPart(m, p, locker.Exclusive) }))
	if already {
		if t.done < h.quorum {
			return locker.Term{}, h.missed(t, ended)
		}
		return locker.Term{Deadline: deadline}, nil
	}
	var fence int64
	if t.done >= h.quorum && h.fixed != nil {
		if fence = h.highest(); fence > 0 {
			t, ended = h.each(ctx, h.apart(func(m *member, p *part) error { return h.raisePart(m, p, fence, true) }))
		}
	}
	won := t.done >= h.quorum && h.becomes(locker.Exclusive, fence, deadline)

	h.mu.Lock()
	h.upgrading = false
	for i := range h.members {
		h.mend(&h.members[i], h.members[i].part)
	}
	h.watch()
	term := locker.Term{Deadline: h.deadline, Fence: h.fence}
	h.mu.Unlock()
	if won {
		return term, nil
	}
	err := h.missed(t, ended)
	if held := t.contended(); held > 0 && t.done+held >= h.quorum && !errors.Is(err, locker.ErrNotHeld) {
		return locker.Term{}, t.contention(h.req.Name, h.quorum, h.cfg.WakeJitter)
	}
	return locker.Term{}, err
}

// becomes makes the hold one of that mode and fence, unless no quorum of such parts lasts until deadline.
func (h *hold) becomes(mode locker.Mode, fence int64, deadline time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	modeBefore, fenceBefore := h.mode, h.fence
	h.mode, h.fence = mode, max(h.fence, fence)
	end, ok := h.until(false)
	if h.phase == holding && ok && reaches(end, deadline) {
		return true
	}
	h.mode, h.fence = modeBefore, fenceBefore
	return false
}

// convertPart changes the mode at one node, and asks the node also where it is that already: what it says, the quorum says. A
// part that is to be exclusive must last until the Deadline first.
func (h *hold) convertPart(m *member, p *part, to locker.Mode) error {
	h.mu.Lock()
	switch {
	case m.part != p:
		h.mu.Unlock()
		return locker.ErrNotHeld
	case to == locker.Exclusive && p.exclusive, to == locker.Shared && !p.exclusive && !p.unsure:
		h.mu.Unlock()
		return h.affirm(m, p, to)
	case p.converting: // it hangs
		h.mu.Unlock()
		return fmt.Errorf("an earlier conversion: %w", errUnanswered)
	}
	p.converting = true
	lasts := h.mode == to || reaches(p.lock.Deadline(), h.deadline) // what is as the hold is was just renewed
	lease := h.lease(0)
	h.mu.Unlock()
	if !lasts {
		r := newRound(1, 1)
		r.pending++
		h.renewPart(m, p, lease, reply{r, 0})
		<-r.decided
		if err := r.errs[0]; err != nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			p.converting = false
			return err
		}
	}
	return h.change(m, p, to)
}

// change changes the mode of a part that is marked as converting.
func (h *hold) change(m *member, p *part, to locker.Mode) error {
	h.mu.Lock()
	exclusive, unsure := p.exclusive, p.unsure
	p.exclusive, p.unsure = false, true
	h.mu.Unlock()
	err := h.sendMode(p, to)
	h.mu.Lock()
	defer h.mu.Unlock()
	p.converting = false
	switch {
	case err == nil:
		p.exclusive, p.unsure = to == locker.Exclusive, false
		p.fence = max(p.fence, p.lock.Fence())
	case errors.Is(err, errors.ErrUnsupported):
		p.exclusive, p.unsure = exclusive, unsure
	case errors.Is(err, locker.ErrNotAcquired):
		p.unsure = false // who is refused is a reader
	}
	h.note(m, p, err)
	if to == locker.Exclusive {
		h.mend(m, p)
	}
	h.watch()
	return err
}

// affirm asks the node for the mode that a part has.
func (h *hold) affirm(m *member, p *part, mode locker.Mode) error {
	err := h.sendMode(p, mode)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.note(m, p, err)
	return err
}

func (h *hold) sendMode(p *part, mode locker.Mode) error {
	ctx, stop := h.bound()
	defer stop()
	if mode == locker.Exclusive {
		return p.lock.Upgrade(ctx)
	}
	return p.lock.Downgrade(ctx)
}

// mend makes a part shared again, in the background, that is exclusive without need, or may be. It goes on counting
// meanwhile. The mutex is held.
func (h *hold) mend(m *member, p *part) {
	needless := h.mode == locker.Shared && !h.upgrading && p != nil && (p.exclusive || p.unsure)
	if h.phase != holding || !needless || m.part != p || p.converting {
		return
	}
	p.converting = true
	go func() { _ = h.change(m, p, locker.Shared) }() // at the worst the next renewal sees to it
}

// conform brings a part that was renewed to the hold's mode. Where that is exclusive, it does not count before.
func (h *hold) conform(m *member, p *part) error {
	h.mu.Lock()
	shared, fits := h.mode == locker.Shared, p.exclusive
	if shared {
		h.mend(m, p)
	}
	h.mu.Unlock()
	if shared || fits {
		return nil
	}
	return h.convertPart(m, p, locker.Exclusive)
}

package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// convert changes the mode at a quorum. One that misses the quorum is taken back where it succeeded. A node that is left in
// the wrong mode, or in one that is not known, is released and restored by a later renewal.
func (h *hold) convert(ctx context.Context, to locker.Mode) (locker.Term, error) {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return locker.Term{}, ended(ctx)
	}
	h.mu.Lock()
	if h.mode == to {
		defer h.mu.Unlock()
		return locker.Term{Deadline: h.deadline}, nil
	}
	h.settled = false
	h.mu.Unlock()
	t, err := h.each(ctx, func(m *member, p *part) error { return h.convertPart(m, p, to) })
	won := t.done >= h.quorum

	h.mu.Lock()
	if won {
		h.mode = to
	}
	h.settled = true
	for i := range h.members {
		h.mend(&h.members[i], h.members[i].part)
	}
	deadline := h.deadline
	h.mu.Unlock()
	if won {
		return locker.Term{Deadline: deadline}, nil
	}
	missed := h.missed(t, err)
	if held := t.contended(); held > 0 && t.done+held >= h.quorum && !errors.Is(missed, locker.ErrNotHeld) {
		return locker.Term{}, t.contention(h.req.Name, h.quorum, h.cfg.WakeJitter)
	}
	return locker.Term{}, missed
}

// convertPart changes the mode at one node.
func (h *hold) convertPart(m *member, p *part, to locker.Mode) error {
	h.mu.Lock()
	if p.converting { // an earlier one, which hangs
		h.mu.Unlock()
		return fmt.Errorf("an earlier conversion: %w", errUnanswered)
	}
	p.converting = true
	h.mu.Unlock()
	err := p.convert(h.ctx, to)
	h.mu.Lock()
	defer h.mu.Unlock()
	p.converting = false
	switch {
	case errors.Is(err, locker.ErrNotHeld):
		if m.part == p {
			m.part, m.err = nil, err
		}
	case errors.Is(err, locker.ErrUnknownOutcome), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p.unsure = true
	}
	if h.settled {
		h.mend(m, p) // too late for the decision
	}
	return err
}

// mend sees to it that a part is of the hold's mode, or is released. The mutex is held.
func (h *hold) mend(m *member, p *part) {
	if p == nil || m.part != p || p.converting || h.phase == over || !p.unsure && p.lock.Mode() == h.mode {
		return
	}
	if !p.unsure && h.mode == locker.Shared { // an upgrade that is taken back
		p.converting = true
		go func() {
			err := p.convert(h.ctx, locker.Shared)
			h.mu.Lock()
			defer h.mu.Unlock()
			p.converting = false
			p.unsure = err != nil
			h.mend(m, p)
		}()
		return
	}
	m.part, m.err = nil, errWrongMode
	go func() { _ = p.lock.Release(h.ctx) }() // at the worst it ends by itself
}

var errWrongMode = errors.New("released: it was in another mode than the quorum")

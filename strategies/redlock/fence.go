package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// fixFence sets the fencing token once a quorum is won: the highest that its nodes minted. The
// mutex is held.
func (h *hold) fixFence() {
	if h.fixed == nil || h.fence > 0 || h.phase != gathering {
		return
	}
	if highest, live := h.view().highestLive(); live >= h.quorum {
		h.fence = highest
		close(h.fixed)
	}
}

// lift raises the counter of a part to the hold's token, if it is behind: from then on the part
// counts.
func (h *hold) lift(m *member, p *part) error {
	h.mu.Lock()
	fence, idle := h.fence, h.phase == over || h.fixed == nil
	h.mu.Unlock()
	if idle {
		return nil
	}
	err := h.raisePart(m, p, fence)
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.part == p {
		m.err = err
	}
	h.tryDecide()
	h.watch()
	return err
}

// raiseUpgraded is raisePart for an upgrade, which a part may have to do before.
func (h *hold) raiseUpgraded(m *member, p *part, fence int64, deadline time.Time, r *round) error {
	h.mu.Lock()
	upgraded := p.exclusive && reaches(p.lock.Deadline(), deadline)
	h.mu.Unlock()
	if !upgraded {
		if err := h.convertPart(m, p, locker.Exclusive, r); err != nil {
			return err
		}
	}
	return h.raisePart(m, p, fence)
}

// raisePart raises the counter of a part.
func (h *hold) raisePart(m *member, p *part, fence int64) error {
	h.mu.Lock()
	gone, enough := m.part != p, p.fence >= fence
	h.mu.Unlock()
	switch {
	case gone:
		return locker.ErrNotHeld
	case enough:
		return nil
	}
	ctx, stop := h.bound()
	defer stop()
	term, err := p.Do(ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: fence})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		p.fence = max(p.fence, fence, term.Fence)
	}
	h.note(m, p, err)
	return err
}

// highest is the highest token that a part which is exclusive has.
func (h *hold) highest() (fence int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.members {
		if p := h.members[i].part; p != nil && p.exclusive {
			fence = max(fence, p.fence)
		}
	}
	return fence
}

// raise raises the token at a quorum that holds. The nodes that it does not reach count no more
// until a renewal does.
func (h *hold) raise(ctx context.Context, fence int64) (lease.Term, error) {
	if h.fixed == nil {
		return lease.Term{}, fmt.Errorf("raise the fence of a lock that is not fenced: %w", errors.ErrUnsupported)
	}
	if err := h.takeTurn(ctx); err != nil {
		return lease.Term{}, err
	}
	defer h.passTurn()
	h.mu.Lock()
	fence = max(fence, h.fence)
	h.mu.Unlock()
	t, err := h.each(ctx, h.apart(func(m *member, p *part, r *round) error {
		if err := h.conform(m, p, r); err != nil {
			return err
		}
		return h.raisePart(m, p, fence)
	}))
	if t.done < h.quorum {
		return lease.Term{}, h.missed(t, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fence = max(h.fence, fence)
	h.watch()
	return lease.Term{Deadline: h.deadline, Fence: h.fence}, nil
}

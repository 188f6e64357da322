package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// fixFence sets the fencing token once a quorum is won: the highest that its nodes minted. The mutex is held.
func (h *hold) fixFence() {
	if h.fixed == nil || h.fence > 0 || h.phase != gathering {
		return
	}
	var won int
	var highest int64
	for i := range h.members {
		if p := h.members[i].part; p != nil {
			won++
			highest = max(highest, p.fence)
		}
	}
	if won >= h.quorum {
		h.fence = highest
		close(h.fixed)
	}
}

// lift raises the counter of a part to the hold's token, if it is behind: from then on the part counts.
func (h *hold) lift(m *member, p *part) error {
	h.mu.Lock()
	fence := h.fence
	if m.part != p || h.phase == over || h.fixed == nil || p.fence >= fence {
		h.mu.Unlock()
		return nil
	}
	h.mu.Unlock()
	term, err := p.Do(h.ctx, locker.Op{Kind: locker.OpRaiseFence, Fence: fence})
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		p.fence = max(p.fence, fence, term.Fence)
	}
	if m.part == p {
		m.err = err
		if errors.Is(err, locker.ErrNotHeld) {
			m.part = nil
		}
	}
	h.look()
	return err
}

// raise raises the token at a quorum that holds. The nodes that it does not reach count no more until a renewal does.
func (h *hold) raise(ctx context.Context, fence int64) (locker.Term, error) {
	if h.fixed == nil {
		return locker.Term{}, fmt.Errorf("raise the fence of a lock that is not fenced: %w", errors.ErrUnsupported)
	}
	h.mu.Lock()
	before := h.fence
	fence = max(fence, before)
	h.mu.Unlock()
	t, err := h.each(ctx, func(_ *member, p *part) error {
		term, err := p.Do(h.ctx, locker.Op{Kind: locker.OpRaiseFence, Fence: fence})
		if err == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			p.fence = max(p.fence, fence, term.Fence)
		}
		return err
	})
	if t.done < h.quorum {
		return locker.Term{}, h.missed(t, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fence = max(h.fence, fence)
	return locker.Term{Deadline: h.deadline, Fence: h.fence}, nil
}

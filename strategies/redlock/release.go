package redlock

import (
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// release ends the hold at all nodes. What is still being asked for goes back when it comes. It returns when a quorum has
// released, or cannot any more; the nodes bound it.
func (h *hold) release(quiet bool) error {
	h.mu.Lock()
	h.phase, h.quiet = over, quiet
	r := newRound(len(h.members), h.quorum)
	parts := make([]*part, len(h.members))
	for i := range h.members {
		if p := h.members[i].part; p != nil {
			p.quiet.Store(quiet)
			parts[i], r.errs[i] = p, errUnanswered
			h.members[i].part = nil
			r.pending++
		}
	}
	h.mu.Unlock()
	r.look()
	for i, p := range parts {
		if p != nil {
			go func() { r.answer(i, p.lock.Release(h.ctx)) }()
		}
	}
	<-r.decided
	t := r.tally(h.nodes)
	switch {
	case t.done >= h.quorum:
		return nil
	case t.done+len(t.failed) < h.quorum:
		return fmt.Errorf("%w: %d of %d nodes held it, %d needed", locker.ErrLost, t.done, len(h.nodes), h.quorum)
	default:
		return t.quorumError(len(h.nodes), h.quorum)
	}
}

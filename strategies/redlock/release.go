package redlock

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// release ends the hold at all nodes. What is still being asked for goes back when it comes. It
// returns when a quorum has released, or cannot any more; at twice the AttemptTimeout, or once it
// where ctx has ended. The releases go on.
func (h *hold) release(ctx context.Context, quiet bool) error {
	h.mu.Lock()
	h.phase, h.quiet = over, quiet
	h.watch()
	r := newRound(len(h.members), h.quorum)
	parts := make([]*part, len(h.members))
	for i := range h.members {
		m := &h.members[i]
		switch p := m.part; {
		case p != nil:
			p.quiet.Store(quiet)
			parts[i], r.errs[i] = p, errUnanswered
			m.part, m.ending = nil, true
			r.pending++
		case m.asking:
			m.await(r, i, nil) // it may hold
		}
	}
	h.becomeLeftover()
	h.mu.Unlock()
	r.begin()
	for i, p := range parts {
		if p != nil {
			go func() {
				r.answer(i, p.lock.Release(h.ctx))
				h.releaseEnded(i)
			}()
		}
	}
	_ = r.wait(ctx, 2*h.timeout, h.timeout) // a release goes on without its ctx
	r.stopWaiting()
	t := r.tally(h.nodes)
	missed := t.quorumError(len(h.nodes), h.quorum)
	switch {
	case t.done >= h.quorum:
		return nil
	case t.done+len(t.failed) < h.quorum:
		return fmt.Errorf("%w: %d of %d nodes held it, %d needed%s", locker.ErrLost, t.done, len(h.nodes), h.quorum, listed(missed.Nodes))
	case t.pending > 0:
		return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, missed)
	default:
		return missed
	}
}

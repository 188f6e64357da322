package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// flight is a renewal of one part.
type flight struct {
	ttl  time.Duration
	done chan struct{} // closed when err is there
	err  error
}

// renew extends the lease at a quorum, and restores the lock where it is missing.
func (h *hold) renew(ctx context.Context, ttl time.Duration) (locker.Term, error) {
	t, err := h.each(ctx, func(m *member, p *part) error { return h.renewPart(m, p, ttl) })
	if t.done < h.quorum {
		return locker.Term{}, h.missed(t, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if d := h.quorumDeadline(); d.IsZero() || d.After(h.deadline) {
		h.deadline = d
	}
	if h.phase == holding {
		h.restore(ttl)
	}
	return locker.Term{Deadline: h.deadline}, nil
}

// renewPart extends the lease at one node, and raises its counter where that is behind. It joins a renewal that is under way
// there: one that hangs is not sent again.
func (h *hold) renewPart(m *member, p *part, ttl time.Duration) error {
	for {
		h.mu.Lock()
		if m.part != p {
			h.mu.Unlock()
			return locker.ErrNotHeld
		}
		other := m.flight
		if other == nil {
			break
		}
		h.mu.Unlock()
		<-other.done
		if other.err != nil || other.ttl >= ttl {
			return other.err
		}
	}
	own := &flight{ttl: ttl, done: make(chan struct{})}
	m.flight = own
	h.mu.Unlock()

	own.err = p.lock.Renew(h.ctx, ttl)
	if own.err == nil {
		own.err = h.lift(m, p)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.flight = nil
	if errors.Is(own.err, locker.ErrNotHeld) && m.part == p {
		m.part, m.err = nil, own.err
	}
	close(own.done)
	return own.err
}

// restore asks the nodes where nothing is held, in the background, while the quorum holds. The mutex is held.
func (h *hold) restore(ttl time.Duration) {
	if !h.settled || !h.live() {
		return
	}
	req := h.req
	req.Resume, req.Owner, req.Mode, req.TTL = locker.Handle{}, h.owner, h.mode, ttl
	for i := range h.members {
		if m := &h.members[i]; m.part == nil && !m.asking {
			m.asking = true
			ctx, stop := h.ctx, func() {}
			if !h.deadline.IsZero() {
				ctx, stop = locker.Detach(h.ctx, time.Until(h.deadline))
			}
			go func() {
				defer stop()
				h.ask(ctx, i, req)
			}()
		}
	}
}

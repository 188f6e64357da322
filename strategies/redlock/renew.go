package redlock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// renew extends the lease at a quorum, and restores the lock where it is missing.
func (h *hold) renew(ctx context.Context, ttl time.Duration) (locker.Term, error) {
	h.mu.Lock()
	aim, lease := time.Now().Add(ttl), h.lease(ttl)
	h.mu.Unlock()
	t, err := h.each(ctx, func(m *member, p *part, r reply) { h.renewPart(m, p, lease, r) })
	if t.done < h.quorum {
		return locker.Term{}, h.missed(t, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if end, ok := h.until(false); ok && h.phase == holding && h.live() { // past the Deadline the Lock is lost
		h.extend(end, aim)
		h.restore(ttl)
	}
	h.watch()
	return locker.Term{Deadline: h.deadline}, nil
}

// extend moves the Deadline to when the quorum ends, but not past aim: a node is asked for more than is promised. The mutex
// is held.
func (h *hold) extend(end, aim time.Time) {
	switch {
	case h.deadline.IsZero():
	case end.IsZero():
		h.deadline = end
	default:
		if end.After(aim) {
			end = aim
		}
		if end.After(h.deadline) {
			h.deadline = end
		}
	}
}

// flight is a renewal of one part. Those who ask for one meanwhile wait for it: one that hangs is not sent again.
type flight struct {
	ttl     time.Duration
	waiting []renewal
}

// renewal is what a round asks of a part.
type renewal struct {
	reply
	ttl time.Duration
}

// renewPart extends the lease at one node, and brings the part up to what the hold is by now. It returns at once.
func (h *hold) renewPart(m *member, p *part, ttl time.Duration, r reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch f := p.flight; {
	case m.part != p:
		r.answer(locker.ErrNotHeld)
	case f == nil:
		h.fly(m, p, []renewal{{r, ttl}})
	default:
		f.waiting = append(slices.DeleteFunc(f.waiting, renewal.over), renewal{r, ttl})
	}
}

// fly sends a renewal to the node. The mutex is held.
func (h *hold) fly(m *member, p *part, waiting []renewal) {
	f := &flight{waiting: waiting}
	for _, w := range waiting {
		f.ttl = max(f.ttl, w.ttl)
	}
	p.flight = f
	go func() {
		err := h.send(m, p, f.ttl)
		h.mu.Lock()
		defer h.mu.Unlock()
		p.flight = nil
		var more []renewal // those that want a longer one
		for _, w := range f.waiting {
			if err == nil && w.ttl > f.ttl {
				more = append(more, w)
			} else {
				w.answer(err)
			}
		}
		if len(more) > 0 {
			h.fly(m, p, more)
		}
		if _, ok := h.until(false); ok && h.phase == holding && m.part == nil && slices.ContainsFunc(f.waiting, renewal.over) {
			h.restore(f.ttl) // the renewal was done when it was found that there is nothing here
		}
	}()
}

// send renews a part, raises its counter where that is behind, and changes its mode where that is another.
func (h *hold) send(m *member, p *part, ttl time.Duration) error {
	ctx, stop := h.bound()
	defer stop()
	if err := p.lock.Renew(ctx, ttl); err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.note(m, p, err)
		return err
	}
	if err := h.lift(m, p); err != nil {
		return err
	}
	return h.conform(m, p)
}

// restore asks the nodes where nothing is held, in the background, while the quorum holds. The mutex is held.
func (h *hold) restore(ttl time.Duration) {
	if h.upgrading || !h.live() {
		return
	}
	req := h.req
	req.Resume, req.Owner, req.Mode, req.TTL = locker.Handle{}, h.owner, h.mode, h.lease(ttl)
	for i := range h.members {
		if m := &h.members[i]; m.part == nil && !m.asking {
			m.asking, m.asked = true, time.Now()
			ctx, stop := locker.WithoutWaiting(h.ctx), func() {} // what holds does not wait
			if !h.deadline.IsZero() {
				ctx, stop = locker.Detach(ctx, time.Until(h.deadline))
			}
			go func() {
				defer stop()
				h.ask(ctx, i, req)
			}()
		}
	}
}

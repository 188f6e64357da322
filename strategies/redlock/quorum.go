package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// view is what the rules look at. The mutex is held.
func (h *hold) view() quorumView {
	v := quorumView{
		nodes: make([]nodeView, len(h.members)), needed: h.quorum, mode: h.mode,
		fenced: h.fixed != nil, fence: h.fence, timeout: h.timeout, now: time.Now(),
	}
	for i := range h.members {
		v.nodes[i] = h.members[i].view()
	}
	return v
}

// view is what the rules look at of one node. The hold's mutex is held.
func (m *member) view() nodeView {
	n := nodeView{
		asking: m.asking, queued: m.queued, askedAt: m.asked, err: m.err, takenOver: m.taken, expired: m.lapsed,
	}
	if p := m.part; p != nil {
		n.held, n.exclusive, n.named, n.fence = true, p.exclusive, p.named, p.fence
		n.deadline, n.renewed = p.lock.Deadline(), p.renewed
	}
	return n
}

// lease returns the TTL to ask a node for, so that it holds for ttl, and until the Deadline. The
// mutex is held.
func (h *hold) lease(ttl time.Duration) time.Duration { return leaseToAsk(ttl, h.deadline, time.Now()) }

// bound is the ctx of what is asked of a node: past the Deadline it is of no use.
func (h *hold) bound() (ctx context.Context, stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	deadline := h.deadline
	if h.phase == gathering {
		deadline = h.began.Add(h.req.TTL)
	}
	if deadline.IsZero() {
		return h.ctx, func() {}
	}
	return detach(h.ctx, time.Until(deadline))
}

// detach returns a ctx with the values of ctx that ends d from now or when stop is called, and not
// with ctx.
func detach(ctx context.Context, d time.Duration) (detached context.Context, stop func()) {
	bound := driver.Bound(context.WithoutCancel(ctx), d)
	return bound, bound.Stop
}

// note drops a part that is not held any more. It is released all the same: where that is said by
// the local clock, a renewal whose answer was lost may have extended it. The mutex is held.
func (h *hold) note(m *member, p *part, err error) {
	if !errors.Is(err, locker.ErrNotHeld) || m.part != p {
		return
	}
	h.drop(m, p, err)
	go func() { _ = p.lock.Release(h.ctx) }()
}

// dropIfEnded drops a part when it ends before its Deadline. Only that of a nested quorum may,
// which is lost with its nodes.
func (h *hold) dropIfEnded(m *member, p *part) {
	if !p.ofQuorum() {
		return
	}
	p.lock.AfterDone(func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if d := p.lock.Deadline(); d.IsZero() || remaining(d, time.Now()) > 0 {
			h.note(m, p, err)
			h.tryDecide()
		}
	})
}

// drop takes a part out. The mutex is held.
func (h *hold) drop(m *member, p *part, err error) {
	if m.part != p {
		return
	}
	m.part, m.err = nil, err
	switch d := p.lock.Deadline(); {
	case !p.named:
	case !d.IsZero() && remaining(d, time.Now()) <= 0: // that explains why it is not held, and may not be all
		m.lapsed = d
	default:
		m.taken = true
	}
	h.watch()
}

// watch sets the alarm where the quorum ends before the Deadline: nodes lost what they had. The
// mutex is held.
func (h *hold) watch() {
	if h.alarm != nil {
		h.alarm.Stop()
	}
	if h.phase != holding {
		return
	}
	v := h.view()
	end, ok := v.lossTime()
	if ok && reaches(end, h.deadline) {
		return
	}
	var wait time.Duration
	if ok {
		wait = max(remaining(end, v.now), 0)
	}
	h.alarm = time.AfterFunc(wait, h.alarmed)
}

// confirm clears the expired marks (lapsed) once a renewal that began at began has succeeded, if
// fewer than a quorum of the nodes may have been taken over: then no other client resumed the hold.
// A mark set less than an AttemptTimeout before began stays: a resume may have been in flight then.
// The mutex is held.
func (h *hold) confirm(began time.Time) {
	if !h.view().noneTookOver(began) {
		return
	}
	for i := range h.members {
		if m := &h.members[i]; began.Sub(m.lapsed) >= h.timeout {
			m.lapsed = time.Time{}
		}
	}
}

// gone tells whether the hold is lost: its quorum has ended. The mutex is held.
func (h *hold) gone() bool {
	if h.phase == holding && h.view().isLost() {
		h.phase = lost
	}
	return h.phase == lost
}

// alarmed ends the Lock, unless a renewal came before.
func (h *hold) alarmed() {
	h.mu.Lock()
	gone, lock := h.gone(), h.lock
	cause := h.loss()
	h.watch()
	h.mu.Unlock()
	if gone && lock != nil {
		lock.Hold().MarkLost(cause) // without the mutex: it runs callbacks
	}
}

// attach gives the hold its Lock.
func (h *hold) attach(lock *locker.Lock) {
	h.mu.Lock()
	h.lock = lock
	gone, cause := h.phase == lost, h.loss()
	h.mu.Unlock()
	if gone {
		lock.Hold().MarkLost(cause)
	}
}

// loss says how many nodes hold what is lost. The mutex is held.
func (h *hold) loss() error {
	n := 0
	var failing []*NodeError
	v := h.view()
	for i, node := range h.nodes {
		if v.counts(v.nodes[i]) {
			n++
		} else if cause := node.failure(); cause != nil {
			failing = append(failing, node.error(cause))
		}
	}
	return fmt.Errorf("%w: %d of %d nodes are known to hold it, %d needed%s", locker.ErrLost, n, len(h.nodes), h.quorum, listed(failing))
}

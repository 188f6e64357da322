package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// isLive reports whether a part has not expired, and is as exclusive as the hold is. The mutex is
// held.
func (h *hold) isLive(p *part) bool {
	if p == nil || h.mode == locker.Exclusive && !p.exclusive {
		return false
	}
	d := p.lock.Deadline()
	return d.IsZero() || left(d) > 0
}

// counts tells whether a member counts toward the quorum: its part is live, and its counter cannot
// fall behind. The mutex is held.
func (h *hold) counts(m *member) bool {
	return h.isLive(m.part) && (h.fixed == nil || h.fence > 0 && m.part.fence >= h.fence)
}

// coming tells whether a member may soon count. The mutex is held.
func (h *hold) coming(m *member) bool {
	return m.asking || m.err == nil && h.isLive(m.part) && !h.counts(m)
}

// never stands for the Deadline of a lease that has no end, so that it can be compared.
var never = time.Unix(1<<40, 0)

// until is when the quorum ends: the Deadline of that many-th latest node that counts. Zero: never.
// Those that are coming may be given the benefit of the doubt, for an AttemptTimeout. ok: there is
// a quorum. The mutex is held.
func (h *hold) until(coming bool) (end time.Time, ok bool) {
	var buf [9]time.Time
	all := buf[:0]
	for i := range h.members {
		switch m := &h.members[i]; {
		case h.counts(m):
			d := m.part.lock.Deadline()
			if d.IsZero() {
				d = never
			}
			all = append(all, d)
		case coming && h.coming(m):
			all = append(all, m.asked.Add(h.timeout))
		}
	}
	if len(all) < h.quorum {
		return time.Time{}, false
	}
	slices.SortFunc(all, func(a, b time.Time) int { return b.Compare(a) })
	if end = all[h.quorum-1]; end.Equal(never) {
		end = time.Time{}
	}
	return end, true
}

// reaches tells whether a lease that ends at end lasts until deadline; zero is never.
func reaches(end, deadline time.Time) bool {
	return end.IsZero() || !deadline.IsZero() && !end.Before(deadline)
}

// left is the time until d, by the monotonic or the wall clock, whichever says less.
func left(d time.Time) time.Duration {
	now := time.Now()
	return min(d.Sub(now), d.Round(0).Sub(now.Round(0)))
}

// lease returns the TTL to ask a node for, so that it holds for ttl, and until the Deadline by its
// own reckoning: that is sooner by the drift that it allows for. It goes by the monotonic clock: by
// a wall clock that was set forward, a node would be asked for less than it takes to reach the
// Deadline. The mutex is held.
func (h *hold) lease(ttl time.Duration) time.Duration {
	if h.deadline.IsZero() {
		return ttl
	}
	const allowance = 10 * time.Millisecond
	need := time.Until(h.deadline)
	need += need/64 + allowance
	return min(max(ttl, need), locker.MaxTTL)
}

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
	return locker.Detach(h.ctx, time.Until(deadline))
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
		if d := p.lock.Deadline(); d.IsZero() || left(d) > 0 {
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
	case !d.IsZero() && left(d) <= 0: // that explains why it is not held, and may not be all
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
	end, ok := h.end()
	if ok && reaches(end, h.deadline) {
		return
	}
	var wait time.Duration
	if ok {
		wait = max(left(end), 0)
	}
	h.alarm = time.AfterFunc(wait, h.alarmed)
}

// end is until(true), unless the hold was taken over: then it may be another's, whatever was
// restored. The mutex is held.
func (h *hold) end() (end time.Time, ok bool) {
	taken := 0
	for i := range h.members {
		if m := &h.members[i]; m.taken || !m.lapsed.IsZero() {
			taken++
		}
	}
	if taken >= h.quorum {
		return time.Time{}, false
	}
	return h.until(true)
}

// confirm clears the expired marks (lapsed) once a renewal that began at began has succeeded, if
// fewer than a quorum of the nodes may have been taken over: then no other client resumed the hold.
// A mark set less than an AttemptTimeout before began stays: a resume may have been in flight then.
// The mutex is held.
func (h *hold) confirm(began time.Time) {
	doubtful := 0
	for i := range h.members {
		m := &h.members[i]
		if m.taken || !m.lapsed.IsZero() || m.part != nil && m.part.named && m.part.renewed.Before(began) {
			doubtful++
		}
	}
	for i := range h.members {
		if m := &h.members[i]; doubtful < h.quorum && began.Sub(m.lapsed) >= h.timeout {
			m.lapsed = time.Time{}
		}
	}
}

// gone tells whether the hold is lost: its quorum has ended. The mutex is held.
func (h *hold) gone() bool {
	if h.phase == holding {
		if end, ok := h.end(); !ok || !end.IsZero() && left(end) <= 0 {
			h.phase = lost
		}
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
		locker.MarkLost(lock, cause) // without the mutex: it runs callbacks
	}
}

// attach gives the hold its Lock.
func (h *hold) attach(lock *locker.Lock) {
	h.mu.Lock()
	h.lock = lock
	gone, cause := h.phase == lost, h.loss()
	h.mu.Unlock()
	if gone {
		locker.MarkLost(lock, cause)
	}
}

// loss says how many nodes hold what is lost. The mutex is held.
func (h *hold) loss() error {
	n := 0
	var failing []*NodeError
	for i, node := range h.nodes {
		if h.counts(&h.members[i]) {
			n++
		} else if cause := node.failure(); cause != nil {
			failing = append(failing, node.error(cause))
		}
	}
	return fmt.Errorf("%w: %d of %d nodes are known to hold it, %d needed%s", locker.ErrLost, n, len(h.nodes), h.quorum, listed(failing))
}

package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/locker"
)

// mostHolds is how many holds a walk looks after.
const mostHolds = 6

var quorumTTLs = []time.Duration{2 * time.Second, 20 * time.Second, 300 * time.Millisecond, 50 * time.Millisecond}

func (m *quorum) node(t *rapid.T) int { return rapid.IntRange(0, nodes-1).Draw(t, "node") }

func (m *quorum) acquire(t *rapid.T) {
	id := m.nextID()
	m.named++
	req := locker.Request{Name: name, Owner: id, TTL: rapid.SampledFrom(quorumTTLs).Draw(t, "ttl"), NoWait: true}
	what := fmt.Sprintf("%s := acquire for %v", id, req.TTL)
	if req.Fenced = rapid.Bool().Draw(t, "fenced"); req.Fenced {
		what += ", fenced"
	}
	var lock *locker.Lock
	s := m.perform(t, what, func(ctx context.Context) (err error) {
		lock, err = m.l.Acquire(ctx, req)
		return err
	})
	free := s.count(func(_ int, k quorumKey) bool { return k.value == "" })
	var was, stayed int
	for _, k := range s.keys {
		if k.till.After(s.start) {
			was++
		}
		if k.till.After(s.end) {
			stayed++
		}
	}
	switch {
	case s.err == nil && s.calm && stayed > nodes-needed:
		m.Fatalf("acquired beside another, who has %d nodes", stayed)
	case s.err == nil:
		h := m.granted(s, id, lock)
		m.fenced(s, h, req.Fenced)
		for i, k := range s.keys {
			if s.calm && !s.bad[i] && k.value == "" {
				h.from[i] = s.start.Add(req.TTL)
			}
		}
		m.checkDeadline(s.step, h.held, s.start.Add(left(req.TTL)), s.end.Add(left(req.TTL)), req.TTL)
	case s.calm && free >= needed:
		m.Fatalf("%d nodes are free, and yet: %v", free, s.err)
	case errors.Is(s.err, locker.ErrNotAcquired):
		if s.calm && was == 0 {
			m.Fatalf("refused, and nobody holds it: %v", s.err)
		}
	case s.calm && !s.faulted():
		m.Fatalf("nothing failed, and yet: %v", s.err)
	}
}

// granted takes a new lock into the model.
func (m *quorum) granted(s *quorumStep, owner string, lock *locker.Lock) *part {
	h := &part{held: held{id: owner, lock: lock, owner: owner, deadline: lock.Deadline()}}
	m.grasp(s, h)
	m.holds = append(m.holds, h)
	if len(m.holds) > mostHolds {
		for i, old := range m.holds {
			if old.released && s.calm {
				m.holds = append(m.holds[:i:i], m.holds[i+1:]...)
				break
			}
		}
	}
	return h
}

// fenced compares a new hold's fencing token.
func (m *quorum) fenced(s *quorumStep, h *part, asked bool) {
	got := h.lock.Fence()
	switch {
	case asked != (got > 0):
		m.Fatalf("%s has the fencing token %d; that it asked for one is %v", h.id, got, asked)
	case asked && s.calm && got <= m.fence:
		m.Fatalf("%s has the fencing token %d, there was %d before", h.id, got, m.fence)
	}
	m.fence = max(m.fence, got)
}

func (m *quorum) renew(t *rapid.T) {
	h := one(t, m.holds)
	ttl := rapid.SampledFrom([]time.Duration{0, 50 * time.Millisecond, time.Second, time.Minute}).Draw(t, "ttl")
	before := h.err(time.Now())
	s := m.perform(t, fmt.Sprintf("renew %s for %v", h.id, ttl), func(ctx context.Context) error { return h.lock.Renew(ctx, ttl) })
	if ttl == 0 {
		ttl = h.lock.TTL()
	}
	switch {
	case before != nil:
		m.over(s.err, before, "renewing "+h.id)
	case s.err != nil:
		m.failed(s, h, "renewing")
	case h.resumed:
		m.Fatalf("renewed %s, which another took over", h.id)
	default:
		m.checkDeadline(s.step, h.held, latest(h.deadline, s.start.Add(left(ttl))), latest(h.deadline, s.end.Add(ttl)), ttl)
		h.deadline, h.taken = h.lock.Deadline(), [nodes]bool{}
		for i, k := range s.keys {
			if !s.calm || s.bad[i] || h.blurred {
				continue
			}
			if h.has(i, k, s.end) || k.value == "" { // a missing node lock is restored
				h.from[i] = latest(h.from[i], s.start.Add(ttl))
			}
		}
		m.grasp(s, h)
	}
}

// failed compares the error of an operation on a hold not over before.
func (m *quorum) failed(s *quorumStep, h *part, what string) {
	there := 0
	for i, k := range s.keys {
		if h.has(i, k, s.end) {
			there++
		}
	}
	reached := s.count(func(i int, k quorumKey) bool { return h.has(i, k, s.end) })
	judged := s.calm && h.sure() && !h.doubted() && s.end.Before(h.deadline)
	switch {
	case judged && reached >= needed:
		m.Fatalf("%s %s, which is at %d nodes that answer: %v", what, h.id, reached, s.err)
	case errors.Is(s.err, locker.ErrLost):
		if judged && there >= needed {
			m.Fatalf("%s %s, which is at %d nodes: %v", what, h.id, there, s.err)
		}
		h.over = locker.ErrLost
	case errors.Is(s.err, locker.ErrNotHeld):
		m.Fatalf("%s %s: %v, want that it is lost", what, h.id, s.err)
	case s.calm && !s.faulted():
		m.Fatalf("%s %s: %v, and nothing failed", what, h.id, s.err)
	}
}

func (m *quorum) release(t *rapid.T) {
	h := one(t, m.holds)
	before := h.err(time.Now())
	s := m.perform(t, "release "+h.id, func(ctx context.Context) error { return h.lock.Release(ctx) })
	has := s.count(func(_ int, k quorumKey) bool { return k.owner == h.owner })
	switch {
	case h.released:
		if !errors.Is(s.err, locker.ErrReleased) {
			m.Fatalf("releasing %s again: %v", h.id, s.err)
		}
		return
	case before != nil:
		m.over(s.err, before, "releasing "+h.id)
	case s.err != nil:
		m.failed(s, h, "releasing")
	case s.calm && !s.faulted() && (h.resumed || h.sure() && has < needed):
		m.Fatalf("released %s, which %d nodes held", h.id, has)
	}
	if before == nil {
		h.over = locker.ErrReleased
	}
	h.released, h.from = true, [nodes]time.Time{}
}

func (m *quorum) resume(t *rapid.T) {
	h := one(t, m.holds)
	id := m.nextID()
	m.named++
	var lock *locker.Lock
	s := m.perform(t, fmt.Sprintf("%s := resume %s", id, h.id), func(ctx context.Context) (err error) {
		lock, err = locker.Resume(ctx, m.l, h.handle)
		return err
	})
	has, all := s.count(func(i int, k quorumKey) bool { return h.has(i, k, s.end) }), 0
	for i, k := range s.keys {
		if k.value != "" && k.value == h.values[i] {
			all++
		}
	}
	switch {
	case s.err == nil && s.calm && all < needed:
		m.Fatalf("resumed %s, of which %d nodes have what the handle names", h.id, all)
	case s.err == nil:
		if h.named != [nodes]bool{true, true, true} {
			m.smudged[h.owner] = true // the old Lock may hold at a node missing in its handle
		}
		h.resumed, h.from = true, [nodes]time.Time{}
		g := m.granted(s, h.owner, lock)
		g.id = id
		if !s.calm { // a late renewal may restore a hold taken over, at one node
			g.blurred, m.smudged[h.owner] = true, true
		}
		m.fenced(s, g, h.handle.Fence() != 0)
		for i, k := range s.keys {
			if s.calm && !s.bad[i] && h.has(i, k, s.end) {
				g.from[i] = s.start.Add(lock.TTL())
			}
		}
	case s.calm && has >= needed:
		m.Fatalf("resuming %s, of which %d nodes have what the handle names: %v", h.id, has, s.err)
	case errors.Is(s.err, locker.ErrNotHeld) && !errors.Is(s.err, locker.ErrUnknownOutcome):
		m.smudged[h.owner] = m.smudged[h.owner] || s.faulted() // a late command is undone, perhaps behind a release
	case s.calm && !s.faulted() && all == 0:
		m.Fatalf("resuming %s, which is nowhere: %v", h.id, s.err)
	default:
		h.blurred, h.from = true, [nodes]time.Time{}
		m.smudged[h.owner] = true
		m.haunt()
	}
}

// wait is a step: time passes, often to the instant of an end.
func (m *quorum) wait(t *rapid.T) {
	times := []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, 7 * time.Second, time.Minute}
	now := time.Now()
	for _, h := range m.holds {
		if d := h.deadline.Sub(now); d > 0 {
			times = append(times, d-time.Millisecond, d+time.Millisecond)
		}
	}
	d := rapid.SampledFrom(times).Draw(t, "time")
	m.notef("%v pass", d)
	m.pass(max(d, 0))
}

// power is a step: nothing reaches a node from now on, or all again.
func (m *quorum) power(t *rapid.T) {
	i := m.node(t)
	m.down[i] = !m.down[i]
	m.srvs[i].drv.cut(m.down[i])
	if m.down[i] {
		m.notef("node %d goes down", i)
		return
	}
	m.notef("node %d comes up", i)
	m.haunt()
}

// restart is a step: a node comes back empty.
func (m *quorum) restart(t *rapid.T) {
	i := m.node(t)
	if m.down[i] {
		t.Skip("down")
	}
	m.notef("node %d restarts empty", i)
	m.takeAway(i)
	m.srvs[i].restart(m.T)
	m.srvs[i].reconnect(m.T)
	m.pass(10 * time.Millisecond) // a server with a clock at rest mints the same tokens again
}

// foreigner is a step: a library without tokens takes the key of one node, takes it by force, or
// deletes it.
func (m *quorum) foreigner(t *rapid.T) {
	i := m.node(t)
	srv := m.srvs[i]
	how := rapid.SampledFrom([]string{"takes", "seizes", "deletes"}).Draw(t, "what")
	if how == "takes" && srv.Exists(name) {
		t.Skip("taken")
	}
	m.takeAway(i)
	if how == "deletes" {
		m.notef("a foreign library deletes the key at node %d", i)
		return
	}
	ttl := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "ttl")
	m.notef("a foreign library takes the key at node %d for %v", i, ttl)
	if err := srv.Set(name, "theirs"); err != nil {
		m.Fatalf("set: %v", err)
	}
	srv.SetTTL(name, ttl)
	m.foreign[i] = time.Now().Add(ttl)
}

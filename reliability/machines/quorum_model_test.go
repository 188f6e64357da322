package machines

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// part is a hold by a quorum, as the model knows it.
type part struct {
	held
	handle locker.Handle
	values [nodes]string // perhaps named by the handle
	named  [nodes]bool   // it does

	from    [nodes]time.Time // until then it surely is at the node; zero: it may not be
	taken   [nodes]bool      // it was taken away there since the quorum held for the last time
	dropped [nodes]bool      // once missing there, with the values perhaps named by a handle
	resumed bool             // another has taken it over
	blurred bool             // another may have
}

// sure reports whether the model knows its nodes.
func (h *part) sure() bool { return !h.resumed && !h.blurred }

// doubted reports whether the owner of one of its handles may have taken a quorum over: then it is
// lost, whatever was restored since.
func (h *part) doubted() bool {
	n := 0
	for _, dropped := range h.dropped {
		if dropped {
			n++
		}
	}
	return n >= needed
}

// grasp notes the values in the Lock's handle after a step: the nodes' new ones and those named
// before. A failed node may not have reported its result yet.
func (m *quorum) grasp(s *quorumStep, h *part) {
	h.handle = h.lock.Handle()
	for i, k := range m.keys() {
		if k.owner != h.owner {
			h.values[i], h.named[i] = "", false
			continue
		}
		known := k.value != s.keys[i].value || h.named[i] && k.value == h.values[i]
		h.values[i], h.named[i] = k.value, s.calm && !s.bad[i] && known
	}
}

// has reports whether the hold surely has the key of node i, until after t.
func (h *part) has(i int, k quorumKey, t time.Time) bool {
	return h.named[i] && k.value == h.values[i] && k.till.After(t)
}

// check compares the model with the locks and with the servers.
func (m *quorum) check() {
	now := time.Now()
	keys := m.keys()
	for _, h := range m.holds {
		m.checkPart(h, now, keys)
	}
	var holder *part
	for _, h := range m.holds {
		if h.lock.Err() != nil || !h.sure() || h.taken != [nodes]bool{} {
			continue
		}
		if holder != nil {
			m.Fatalf("%s and %s both believe to hold", holder.id, h.id)
		}
		holder = h
	}
	m.checkKeys(now, keys)
}

func (m *quorum) checkPart(h *part, now time.Time, keys [nodes]quorumKey) {
	sure, there := 0, 0
	want := h.err(now)
	for i, k := range keys {
		if k.value != h.values[i] && h.values[i] != "" {
			h.dropped[i] = true
		}
		if want == nil && !h.doubted() && h.from[i].After(now) { // after its end by its own clock it may have been cleaned up
			if sure++; k.owner != h.owner || k.till.Before(h.from[i].Add(-time.Millisecond)) {
				m.Fatalf("%s is not at node %d for %v, but for %v of %q", h.id, i, h.from[i].Sub(now), k.till.Sub(now), k.owner)
			}
		}
		if h.taken[i] || k.owner == h.owner && !k.till.Before(h.deadline) {
			there++
		}
	}
	got := h.lock.Err()
	if want == nil && is(got, locker.ErrLost) {
		if sure >= needed && h.sure() && !h.doubted() {
			m.Fatalf("%s is at %d nodes, and ended: %v", h.id, sure, got)
		}
		h.over = locker.ErrLost
	} else if !is(got, want) {
		m.Fatalf("Err of %s is %v, want %v", h.id, got, want)
	}
	if ended := h.isDone(); ended != (got != nil) {
		m.Fatalf("Done of %s is closed: %v, Err is %v", h.id, ended, got)
	}
	if end := h.lock.Deadline(); !end.Equal(h.deadline) {
		m.Fatalf("the Deadline of %s is in %v, was %v", h.id, end.Sub(now), h.deadline.Sub(now))
	}
	if got == nil && h.sure() && there < needed {
		m.Fatalf("%s counts on %v, yet %d nodes hold it for so long, %d needed", h.id, h.deadline.Sub(now), there, needed)
	}
}

// checkKeys takes the census of the servers.
func (m *quorum) checkKeys(now time.Time, keys [nodes]quorumKey) {
	for i, srv := range m.srvs {
		for _, key := range srv.Keys() {
			switch {
			case key != name && key != counter:
				m.Fatalf("there is a key %q at node %d", key, i)
			case srv.TTL(key) <= 0:
				m.Fatalf("the key %q at node %d has no end", key, i)
			}
		}
		k := keys[i]
		if k.value == "" || m.foreign[i].After(now) || m.haunted.After(now) || m.down[i] || m.smudged[k.owner] {
			continue
		}
		known := false
		for _, h := range m.holds {
			known = known || h.owner == k.owner && !h.released && !h.resumed
		}
		if !known {
			m.Fatalf("node %d has a key of %q for %v, who does not hold", i, k.owner, k.till.Sub(now))
		}
	}
}

// takeAway deletes the key of a node, and notes its owner.
func (m *quorum) takeAway(i int) {
	owner := m.keys()[i].owner
	for _, h := range m.holds {
		if h.owner == owner {
			h.from[i], h.taken[i] = time.Time{}, true
		}
	}
	m.srvs[i].Del(name)
	m.foreign[i] = time.Time{}
}

// end lets all remaining holds end, and demands that nothing stays at the servers.
func (m *quorum) end() {
	m.notef("the end")
	m.rest()
	for i, srv := range m.srvs {
		if srv.Exists(name) {
			m.Fatalf("all is over, yet there is a key at node %d:\n%s", i, srv.Dump())
		}
	}
	m.pass(24*time.Hour + time.Minute)
	for i, srv := range m.srvs {
		if keys := srv.Keys(); len(keys) > 0 {
			m.Fatalf("a day later there are the keys %q at node %d", keys, i)
		}
	}
}

package machines

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// check compares the model with the locks, the server and the reply of Inspect.
func (m *machine) check() {
	m.checkServer()
	for _, h := range m.holds {
		m.checkLock(h)
	}
	m.checkExclusion()
	if !m.haunted.After(time.Now()) {
		m.checkInspect()
	}
	m.outlasted = 0
}

// checkServer compares keys, expiries and holds, and resolves steps with an unknown outcome.
func (m *machine) checkServer() {
	now := time.Now()
	calm := !m.haunted.After(now)
	for _, h := range m.holds {
		till := m.srv.end(h.token, m.hash)
		there := !till.IsZero()
		switch {
		case h.unsure && calm:
			m.learn(h, till)
		case h.unsure:
			if m.watched { // it is renewed meanwhile
				h.to = latest(h.to, till)
			}
		case h.gone && there && calm:
			m.Fatalf("%s is over, yet at the server for %v", h.id, till.Sub(now))
		case h.gone:
		case !there && h.must(now) && (!m.watched || m.outlasted == 0):
			m.Fatalf("%s is not at the server, where it ends in %v", h.id, h.from.Sub(now))
		case !there:
			h.gone = true
		case !within(till, h.from, h.to) && !m.watched:
			m.Fatalf("%s ends at the server in %v, want %v to %v", h.id, till.Sub(now), h.from.Sub(now), h.to.Sub(now))
		default:
			h.from = till
			if calm || m.watched {
				h.to = till
			}
		}
	}
	m.checkKeys(calm)
}

// learn asks the server for the result of a step with an unknown outcome. A failed resume was
// undone.
func (m *machine) learn(h *hold, till time.Time) {
	now := time.Now()
	h.unsure = false
	switch {
	case till.IsZero():
		if h.must(now) {
			m.Fatalf("%s is not at the server, where it ends in %v", h.id, h.from.Sub(now))
		}
		h.gone = true
	case h.gone:
		m.Fatalf("%s is over, yet at the server for %v", h.id, till.Sub(now))
	case !within(till, h.from, h.to) && !m.watched:
		m.Fatalf("%s ends at the server in %v, want %v to %v", h.id, till.Sub(now), h.from.Sub(now), h.to.Sub(now))
	default:
		h.from, h.to = till, till
		if m.shared {
			h.writer = m.srv.HGet(name, "writer") == h.token
		}
	}
}

// checkKeys checks the server's set of keys.
func (m *machine) checkKeys(calm bool) {
	now := time.Now()
	for _, key := range m.srv.Keys() {
		ttl := m.srv.TTL(key)
		switch {
		case key == waiters && ttl > 0 && ttl <= 5*time.Second: // at most so long after an attempt
		case key != name && key != counter:
			m.Fatalf("there is a key %q", key)
		case ttl <= 0:
			m.Fatalf("the key %q has no end", key)
		case key == counter && ttl > 24*time.Hour+m.longest:
			m.Fatalf("the fence counter lives for %v, the longest lease was %v", ttl, m.longest)
		}
	}
	if !calm {
		return
	}
	var last time.Time
	n := 0
	for _, h := range m.holds {
		if h.may(now) {
			n++
			last = latest(last, h.to)
			if h.fenced && h.over == nil && m.srv.TTL(counter) < h.deadline.Sub(now)+24*time.Hour-time.Second && m.srv.fence() != 0 {
				m.Fatalf("the fence counter lives for %v, %s for %v", m.srv.TTL(counter), h.id, h.deadline.Sub(now))
			}
		}
	}
	if m.foreign.After(now) {
		n, last = n+1, latest(last, m.foreign)
	}
	if got := m.srv.count(lease.TokenLen); got != n {
		m.Fatalf("%d holds are at the server, want %d", got, n)
	}
	if last = latest(last, m.intents); m.srv.Exists(name) && m.srv.TTL(name) > last.Sub(now)+time.Millisecond {
		m.Fatalf("the key lives for %v, the last hold for %v", m.srv.TTL(name), last.Sub(now))
	}
}

// checkLock compares a Lock's methods with the model.
func (m *machine) checkLock(h *hold) {
	now := time.Now()
	if m.watched && h.over == nil {
		m.watchedLock(h)
	}
	want := h.err(now)
	if got := h.lock.Err(); !is(got, want) {
		m.Fatalf("Err of %s is %v, want %v", h.id, got, want)
	}
	if ended := h.isDone(); ended != (want != nil) {
		m.Fatalf("Done of %s is closed: %v, want %v", h.id, ended, want != nil)
	}
	if got := h.lock.Deadline(); !got.Equal(h.deadline) {
		m.Fatalf("the Deadline of %s is in %v, was %v", h.id, got.Sub(now), h.deadline.Sub(now))
	}
	if got := h.lock.Mode(); got != h.mode && want == nil {
		m.Fatalf("%s is %v, want %v", h.id, got, h.mode)
	}
	if want == nil && h.must(now) && h.from.Before(h.deadline) {
		m.Fatalf("%s counts on %v, the server lets it end in %v", h.id, h.deadline.Sub(now), h.from.Sub(now))
	}
}

// watchedLock adds the watchdog's renewals to the model.
func (m *machine) watchedLock(h *hold) {
	got := h.lock.Deadline()
	if got.Before(h.deadline) {
		m.Fatalf("the Deadline of %s went back by %v", h.id, h.deadline.Sub(got))
	}
	h.deadline = got
	if h.lock.Err() == nil {
		return
	}
	if !h.gone && !h.unsure && !h.taken && m.outlasted < h.lock.TTL()/2 {
		m.Fatalf("%s was renewed all the time, and ended: %v", h.id, h.lock.Err())
	}
	h.over = locker.ErrLost
}

// checkExclusion fails the test unless Locks held by their own account exclude each other. Those
// taken over are excepted.
func (m *machine) checkExclusion() {
	now := time.Now()
	if m.permits > 0 {
		used := 0
		for _, h := range m.holds {
			if h.lock.Err() == nil && h.must(now) {
				used += h.permits
			}
		}
		if used > m.permits {
			m.Fatalf("locks that believe to hold have %d permits of %d", used, m.permits)
		}
		return
	}
	for i, h := range m.holds {
		for _, other := range m.holds[:i] {
			if h.lock.Err() != nil || other.lock.Err() != nil || !h.must(now) || !other.must(now) {
				continue
			}
			switch {
			case m.reentrant && h.owner == other.owner:
			case m.shared && h.lock.Mode() == locker.Shared && other.lock.Mode() == locker.Shared:
			default:
				m.Fatalf("%s and %s both believe to hold", other.id, h.id)
			}
		}
	}
}

func (m *machine) checkInspect() {
	now := time.Now()
	state, err := m.l.(locker.Inspector).Inspect(context.Background(), name)
	if m.foreign.After(now) && m.hash {
		if err == nil {
			m.Fatalf("Inspect says %+v of a key of another type", state)
		}
		return
	}
	if err != nil {
		m.Fatalf("Inspect: %v", err)
	}
	want := locker.State{Left: max(m.foreign.Sub(now), 0)}
	if want.Left > 0 {
		want.Held, want.Holds = true, 1
	}
	names, used := []string{""}, 0
	for _, h := range m.holds {
		if h.may(now) {
			used += h.permits
			want.Held, want.Holds, want.Left = true, want.Holds+1, max(want.Left, h.to.Sub(now))
			names = append(names, h.owner)
			if !h.writer {
				want.Mode = locker.Shared
			}
		}
	}
	if state.Held != want.Held || state.Holds != want.Holds || state.Mode != want.Mode || (state.Left-want.Left).Abs() > time.Millisecond {
		m.Fatalf("Inspect says %+v, want %+v", state, want)
	}
	if state.Permits != m.permits || state.Free != m.permits-used {
		m.Fatalf("Inspect says that %d of %d permits are free, want %d of %d", state.Free, state.Permits, m.permits-used, m.permits)
	}
	if !slices.Contains(names, state.Owner) {
		m.Fatalf("Inspect says that %q holds, want one of %q", state.Owner, names)
	}
}

// end ends all remaining holds, and fails the test if anything stays at the server.
func (m *machine) end() {
	m.notef("the end")
	for _, h := range m.holds {
		if !h.released && m.watched {
			_ = h.lock.Release(context.Background())
			h.released, h.gone = true, true
		}
	}
	pass(time.Minute + time.Second)
	if m.srv.Exists(name) && !m.foreign.After(time.Now()) {
		m.Fatalf("all is over, yet there is a key for %v:\n%s", m.srv.TTL(name), m.srv.Dump())
	}
	pass(24*time.Hour + time.Minute)
	if keys := m.srv.Keys(); len(keys) > 0 {
		m.Fatalf("a day later there are the keys %q", keys)
	}
}

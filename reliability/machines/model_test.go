package machines

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// held is a Lock, in a model.
type held struct {
	id       string // in scripts
	lock     *locker.Lock
	owner    string // of a quorum, at all nodes; a resumed hold keeps its owner
	deadline time.Time
	over     error // locker.ErrReleased or locker.ErrLost, once the Lock knows
	released bool  // Release was called
}

// err returns the error due from the Lock's Err at now.
func (h *held) err(now time.Time) error {
	if h.over == nil && !now.Before(h.deadline) {
		h.over = locker.ErrLost
	}
	return h.over
}

// isDone reports whether Done is closed.
func (h *held) isDone() bool {
	select {
	case <-h.lock.Done():
		return true
	default:
		return false
	}
}

// hold is an acquired or resumed hold, in the model.
type hold struct {
	held
	token   string
	mode    locker.Mode // the Lock's
	writer  bool        // its mode at the server
	fenced  bool
	permits int             // of a semaphore
	handle  []locker.Handle // of all its modes so far

	from, to time.Time // it ends at the server in between; they differ only while a command may come late
	taken    bool      // it was taken away once; a renewal may have seen this before a late command brought it back
	gone     bool      // the server has it no more, whether or not the Lock knows
	unsure   bool      // a step on it has an unknown outcome: the server is asked
}

// may reports whether the server may have had the hold after t; must, whether it certainly had it
// until t.
func (h *hold) may(t time.Time) bool  { return !h.gone && h.to.After(t) }
func (h *hold) must(t time.Time) bool { return !h.gone && !h.unsure && h.from.After(t) }

// excludes reports whether h excludes an acquire by owner.
func (k *kind) excludes(h *hold, owner string, mode locker.Mode) bool {
	switch {
	case k.reentrant:
		return owner == "" || h.owner != owner
	case k.shared:
		return h.writer || h.unsure || mode == locker.Exclusive
	default:
		return true
	}
}

// kept reports whether somebody may, and whether somebody must, have kept such a request out at
// some time of a step.
func (m *machine) kept(s step, except *hold, owner string, mode locker.Mode, permits int) (may, must bool) {
	if m.permits > 0 {
		return m.short(s, permits)
	}
	for _, h := range m.holds {
		if h == except || !m.excludes(h, owner, mode) {
			continue
		}
		may = may || h.may(s.start)
		must = must || h.must(s.end)
	}
	if m.foreign.After(s.start) && !m.hash {
		may, must = true, must || m.foreign.After(s.end)
	}
	return may || m.haunted.After(s.start) || m.intents.After(s.start), must
}

// short is kept for permits of a semaphore.
func (m *machine) short(s step, permits int) (may, must bool) {
	free, surely := m.permits, m.permits
	for _, h := range m.holds {
		if h.may(s.start) {
			surely -= h.permits
		}
		if h.must(s.end) {
			free -= h.permits
		}
	}
	return permits > surely || m.haunted.After(s.start), permits > free
}

// left is the drift margin of a Deadline, for a lease of ttl.
func left(ttl time.Duration) time.Duration { return ttl - ttl/100 - 2*time.Millisecond }

// within reports whether t is from first to last, give or take a millisecond, the server's unit.
func within(t, first, last time.Time) bool {
	return !t.Before(first.Add(-time.Millisecond)) && !t.After(last.Add(time.Millisecond))
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// is demands want as err; nil: none.
func is(err, want error) bool {
	if want == nil {
		return err == nil
	}
	return errors.Is(err, want)
}

// fencedAs compares a new hold's fencing token. nested: it came into a tenure of its own owner;
// before is the earlier counter.
func (m *machine) fencedAs(h *hold, before int64, nested bool) {
	if !nested {
		m.tenure = 0
	}
	got := h.lock.Fence()
	haunted := !m.haunted.Before(time.Now())
	switch {
	case !h.fenced:
		if got != 0 {
			m.Fatalf("%s has the fencing token %d, but asked for none", h.id, got)
		}
		return
	case got <= 0:
		m.Fatalf("%s asked for a fencing token and has %d", h.id, got)
	case haunted && got >= m.fence:
	case nested && m.tenure != 0:
		if got != m.tenure {
			m.Fatalf("%s entered a tenure whose fencing token is %d with %d", h.id, m.tenure, got)
		}
	case h.mode == locker.Shared && before != 0:
		if got != before {
			m.Fatalf("%s is a reader after the writer with the fencing token %d, and has %d", h.id, before, got)
		}
	case got <= m.fence:
		m.Fatalf("%s has the fencing token %d, there was %d before", h.id, got, m.fence)
	}
	m.fence, m.tenure = max(m.fence, got), got
	if now := m.srv.fence(); now < got {
		m.Fatalf("%s has the fencing token %d, the counter is %d", h.id, got, now)
	}
}

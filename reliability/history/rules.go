package history

import "time"

// Model is a kind of lock.
type Model string

// The models.
const (
	Exclusive Model = "exclusive" // one hold
	Reentrant Model = "reentrant" // any number of holds of one owner
	ReadWrite Model = "readwrite" // any number of readers, or one writer
	Semaphore Model = "semaphore" // holds of Rules.Permits permits in all
)

// Rules say what is promised.
type Rules struct {
	Model Model `json:"model"`
	// Permits is the limit of a semaphore: 1 to 9.
	Permits int `json:"permits,omitempty"`
	// Linger is how long a request may be held up before the server executes it, and how long the
	// library cleans up after one: what is not released is gone one TTL and Linger after the last
	// that was heard of it.
	Linger time.Duration `json:"linger"`
	// Resend is how long a call takes at least in which a command is sent more than once, its
	// connection having broken: what was sent first may then be executed late, and is cleaned up.
	// 0: a third of the TTL, at most 3 s, as where no answer came.
	Resend time.Duration `json:"resend,omitempty"`
	// Crowd says that a refusal proves nothing: those who lose a quorum refuse each other.
	Crowd bool `json:"crowd,omitempty"`
	// Intent is for how long after the attempt of one who waits those of others may be refused,
	// since a lock keeps turns among those who wait: readers for a writer, writers for both. 0:
	// there are no turns.
	Intent time.Duration `json:"intent,omitempty"`
	// Woken is for how long after somebody waited a free lock may be kept for the waiter that a
	// release has woken: attempts of others that wait are refused meanwhile, and with Fair those of
	// all. 0: it is not kept.
	Woken time.Duration `json:"woken,omitempty"`
	Fair  bool          `json:"fair,omitempty"`
	// HandOver says that a holder may hand the lock over to a waiter of its own process.
	HandOver bool `json:"handOver,omitempty"`
	// Watched says that holds are renewed without a call of their client.
	Watched bool `json:"watched,omitempty"`
}

// attempt is how long one send of a command with this TTL may take: a call that took longer may
// have been sent again, and what was sent first may be executed last.
func attempt(ttl time.Duration) int64 { return int64(min(ttl/3, 3*time.Second)) }

// resent reports whether the command of a call may have been sent more than once.
func (r Rules) resent(e Event) bool {
	least := attempt(e.TTL)
	if r.Resend > 0 {
		least = min(least, int64(r.Resend))
	}
	return e.Return-e.Call >= least
}

// span is a part of the history's time.
type span struct{ from, to int64 }

func (s span) meets(from, to int64) bool { return s.from <= to && from <= s.to }

// lease is what a history tells about one hold.
type lease struct {
	number   int
	owner    string
	permits  int // of a semaphore
	acquired Event
	deadline int64  // the last that was promised
	until    int64  // the server has let go by then
	released *Event // nil: it was not
	unsure   bool   // a downgrade went without an answer: the server may have it as a writer's
	doubt    int64  // from then on a server may have lost it, or bring it back; never: none may
	since    int64  // it began at the earliest then
	heir     *Event // the acquire that it was handed over to; nil: none
	minHold  bool   // a release leaves the name taken until least
	least    int64
	passed
}

// shaky reports whether a server may have lost the hold, or may bring it back.
func (l *lease) shaky() bool { return l.doubt < never }

// doubtful reports whether what the holder was told at a time may be due to a loss.
func (l *lease) doubtful(at int64) bool { return at >= l.doubt }

// leases finds the holds.
func leases(events []Event, r Rules) map[string]*lease {
	all := map[string]*lease{}
	for _, e := range events {
		if e.begins() {
			all[e.Hold] = &lease{
				number: len(all), owner: e.Owner, permits: max(e.Permits, 1), acquired: e, doubt: never, since: e.Call,
				minHold: e.MinHold > 0, least: e.Call + int64(e.MinHold-drift(e.TTL)),
			}
		}
	}
	ttl := map[*lease]int64{}
	for i, e := range events {
		l := all[e.Hold]
		if l == nil {
			continue
		}
		ttl[l] = max(ttl[l], int64(e.TTL))
		l.deadline = max(l.deadline, e.Deadline)
		l.until = max(l.until, e.Deadline, e.Return)
		if e.Kind == Release {
			l.released = &events[i]
		}
		l.unsure = l.unsure || e.Kind == Downgrade && e.Outcome == Unsettled
	}
	for _, l := range all {
		l.until = min(l.until+ttl[l]+int64(r.Linger), never)
	}
	inherit(events, all)
	pass(events, all, r)
	return all
}

// end is the span in which the server lets go of a hold whose release did not succeed. A release
// without an answer may have done it at once; one that was told "lost" before the Deadline proves
// that it was done too early, and by nobody. A server that loses the hold lets go of it then. A
// renewal behind, by a watchdog, may be told in the middle of a resume of some nodes that comes to
// nothing that the hold is lost: the other nodes are given up then.
func (l *lease) end(r Rules) span {
	s := span{l.deadline, l.until}
	if e := l.released; e != nil && (e.Outcome != Lost || e.Return >= l.deadline || len(l.doubts) > 0) {
		s.from = min(e.Call, l.deadline)
	}
	if l.minHold {
		s.from = max(s.from, l.least)
	}
	for _, d := range l.doubts {
		if r.Crowd {
			s.from = min(s.from, d.from)
		}
	}
	s.from = min(s.from, l.doubt)
	return s
}

// ends reports whether the server lets go of the hold by itself, as far as the model is to see the
// hold at all.
func (l *lease) ends() bool {
	if l.doubtful(l.acquired.Return) {
		return false
	}
	if l.taken != nil {
		return l.doubtful(l.taken.Return)
	}
	if l.heir != nil {
		return l.doubtful(l.heir.Return)
	}
	return l.released == nil || l.released.Outcome != OK || l.doubtful(l.released.Return) || l.doubted(*l.released)
}

// keeps reports whether the release of the hold succeeded and leaves the name taken until MinHold
// has passed. It is false for holds that the model leaves out.
func (l *lease) keeps() bool {
	return l.minHold && l.released != nil && l.heir == nil && !l.doubtful(l.acquired.Return) && !l.ends()
}

// kept is the span in which the server lets go of a hold that was released before its MinHold had
// passed. The release says how much is left when it is sent.
func (l *lease) kept(r Rules) span {
	e, a := l.released, l.acquired
	s := span{min(max(e.Call, l.least), l.doubt), l.until}
	if a.MinHold > 0 {
		s.to = min(s.to, max(e.Return, a.Return+int64(a.MinHold)+e.Return-e.Call)+int64(r.Linger))
	}
	return s
}

// leftovers are the spans in which something may stand at the server that is nobody's hold: what an
// acquire without an answer brought about, or one that was sent more than once, or whose wait for a
// holder ended during an attempt; a conversion or a resume without an answer.
func leftovers(events []Event, all map[string]*lease, r Rules) map[string]span {
	found := map[string]span{}
	for _, e := range events {
		switch {
		case e.Kind == Acquire && (e.Outcome == Unsettled || e.Outcome == Lost || e.Open || r.resent(e)):
			found[e.ID] = span{e.Call, max(e.Return+int64(e.TTL)+int64(r.Linger), r.handedTo(e, all))}
		case (e.Kind == Downgrade || e.Kind == Upgrade) && (e.Outcome == Unsettled || e.Outcome == Lost) && all[e.Hold] != nil:
			found[e.ID] = span{e.Call, all[e.Hold].until}
		case e.doubts(r) && all[e.Over] != nil:
			found[e.ID] = span{e.Call, all[e.Over].until}
		}
	}
	for _, l := range all {
		if l.taken != nil && l.again() {
			found[l.acquired.ID] = span{l.acquired.Call, l.until}
		}
	}
	return found
}

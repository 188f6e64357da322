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

// Rules are the promises to check.
type Rules struct {
	Model Model `json:"model"`
	// Permits is the limit of a semaphore: 1 to 9.
	Permits int `json:"permits,omitempty"`
	// Linger bounds how long a request may be delayed before the server executes it, and how long
	// the library cleans up after one. An unreleased hold ends one TTL and Linger after the last
	// answer about it.
	Linger time.Duration `json:"linger"`
	// Resend is the duration of the shortest call with a command resent because its connection
	// broke. The first send may then be executed late, and is cleaned up. 0: a third of the TTL, at
	// most 3 s, as an unanswered command is resent then.
	Resend time.Duration `json:"resend,omitempty"`
	// Crowd: a refusal proves nothing, as in a quorum: contenders with a part of the nodes each
	// refuse one another.
	Crowd bool `json:"crowd,omitempty"`
	// Woken is how long a release may reserve the lock for the waiter it wakes. Other waiters'
	// attempts are refused meanwhile, and with Fair all other attempts: of writers in favour of any
	// waiter, of readers in favour of writers. 0: no reservation.
	Woken time.Duration `json:"woken,omitempty"`
	Fair  bool          `json:"fair,omitempty"`
	// HandOver: a holder may hand the lock over to a waiter of its process.
	HandOver bool `json:"handOver,omitempty"`
	// Several: each lock is acquired with another, by locker.AcquireAll.
	Several bool `json:"several,omitempty"`
	// Watched: holds are renewed without a call of their client.
	Watched bool `json:"watched,omitempty"`
}

// outlastsTimeout reports whether a call lasted until an unanswered command was resent: for a third
// of the TTL, at most 3 s. The first send may be executed after the resend.
func (e Event) outlastsTimeout() bool { return e.Return-e.Call >= int64(min(e.TTL/3, 3*time.Second)) }

// mayHaveResent reports whether the command of a call may have been sent more than once: after a
// timeout or a broken connection.
func (r Rules) mayHaveResent(e Event) bool {
	return e.outlastsTimeout() || r.Resend > 0 && e.Return-e.Call >= int64(r.Resend)
}

// span is an interval of the history's time.
type span struct{ from, to int64 }

func (s span) meets(from, to int64) bool { return s.from <= to && from <= s.to }

// lease is one hold, as a history shows it.
type lease struct {
	number        int
	owner         string
	permits       int // of a semaphore
	acquired      Event
	earliestBegin int64
	deadline      int64 // the last promised one
	latestEnd     int64 // at the server
	minHoldEnd    int64 // a release keeps the name taken until then; noMinHold: it does not
	lossFrom      int64 // from then on a server may have lost or revived it; never: none may have

	downgradeUnsettled bool   // a downgrade was not answered: it may still be exclusive at the server
	released           *Event // nil: it was not released
	successor          *Event // the acquire by its hand-over; nil: none
	takeOvers
}

// noMinHold is the minHoldEnd of a hold without a MinHold.
const noMinHold = -never

func (l *lease) hasMinHold() bool { return l.minHoldEnd != noMinHold }

// mayBeLost reports whether a server may have lost or revived the hold.
func (l *lease) mayBeLost() bool { return l.lossFrom < never }

// mayBeLostAt reports whether an answer to the holder at that time may be due to a loss.
func (l *lease) mayBeLostAt(at int64) bool { return at >= l.lossFrom }

// leases returns the holds of a history, by their names.
func leases(events []Event, r Rules) map[string]*lease {
	all := map[string]*lease{}
	for _, e := range events {
		if e.begins() {
			l := &lease{
				number: len(all), owner: e.Owner, permits: max(e.Permits, 1), acquired: e, earliestBegin: e.Call,
				lossFrom: never, minHoldEnd: noMinHold,
			}
			if e.MinHold > 0 {
				l.minHoldEnd = e.Call + int64(e.MinHold-drift(e.TTL))
			}
			all[e.Hold] = l
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
		l.latestEnd = max(l.latestEnd, e.Deadline, e.Return)
		if e.Kind == Release {
			l.released = &events[i]
		}
		l.downgradeUnsettled = l.downgradeUnsettled || e.Kind == Downgrade && e.Outcome == Unsettled
	}
	for _, l := range all {
		l.latestEnd = min(l.latestEnd+ttl[l]+int64(r.Linger), never)
	}
	findHandOvers(events, all)
	findResumes(events, all, r)
	return all
}

// end returns the span in which the server ends a hold without a successful release. An unanswered
// release may have ended it at once. If the release found the hold lost before the Deadline, the
// hold ended too early, and not by the release. A server that loses its state ends the hold then.
// If a resume takes over some nodes and fails, a watchdog's renewal meanwhile may report a loss,
// and the other nodes are released.
func (l *lease) end(r Rules) span {
	s := span{l.deadline, l.latestEnd}
	if e := l.released; e != nil && (e.Outcome != Lost || e.Return >= l.deadline || len(l.failedResumes) > 0) {
		s.from = min(e.Call, l.deadline)
	}
	s.from = max(s.from, l.minHoldEnd)
	for _, resume := range l.failedResumes {
		if r.Crowd {
			s.from = min(s.from, resume.from)
		}
	}
	s.from = min(s.from, l.lossFrom)
	return s
}

// ends reports whether the server ends the hold by itself. It is false for holds left out of the
// model.
func (l *lease) ends() bool {
	if l.mayBeLostAt(l.acquired.Return) {
		return false
	}
	if l.resumedBy != nil {
		return l.mayBeLostAt(l.resumedBy.Return)
	}
	if l.successor != nil {
		return l.mayBeLostAt(l.successor.Return)
	}
	return l.released == nil || l.released.Outcome != OK || l.mayBeLostAt(l.released.Return) || l.duringFailedResume(*l.released)
}

// keeps reports whether the release of the hold succeeded and keeps the name taken until MinHold
// has passed. It is false for holds left out of the model.
func (l *lease) keeps() bool {
	return l.hasMinHold() && l.released != nil && l.successor == nil && !l.mayBeLostAt(l.acquired.Return) && !l.ends()
}

// freed returns the span in which the server frees the name of a hold released before its MinHold
// had passed. The release states the time left when it was sent.
func (l *lease) freed(r Rules) span {
	e, a := l.released, l.acquired
	s := span{min(max(e.Call, l.minHoldEnd), l.lossFrom), l.latestEnd}
	if a.MinHold > 0 {
		s.to = min(s.to, max(e.Return, a.Return+int64(a.MinHold)+e.Return-e.Call)+int64(r.Linger))
	}
	return s
}

// leftovers returns the spans in which the server may have a hold of nobody, by the event that may
// have left it: an unanswered acquire, one sent more than once or ended during an attempt, an
// unanswered conversion or resume.
func leftovers(events []Event, all map[string]*lease, r Rules) map[string]span {
	found := map[string]span{}
	for _, e := range events {
		switch {
		case e.Kind == Acquire && (e.Outcome == Unsettled || e.Outcome == Lost || e.Open || r.mayHaveResent(e)):
			found[e.ID] = span{e.Call, max(e.Return+int64(e.TTL)+int64(r.Linger), r.handedTo(e, all))}
		case (e.Kind == Downgrade || e.Kind == Upgrade) && (e.Outcome == Unsettled || e.Outcome == Lost) && all[e.Hold] != nil:
			found[e.ID] = span{e.Call, all[e.Hold].latestEnd}
		case e.mayHaveTakenOver(r) && all[e.Over] != nil:
			found[e.ID] = span{e.Call, all[e.Over].latestEnd}
		}
	}
	for _, l := range all {
		if l.resumedBy != nil && l.mayRevive() {
			found[l.acquired.ID] = span{l.acquired.Call, l.latestEnd}
		}
	}
	return found
}

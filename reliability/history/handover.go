package history

import (
	"fmt"
	"slices"
	"time"
)

// findHandOvers finds the hand-overs. It orders them by the returns of the acquires: a waiter may
// have called before its predecessor.
func findHandOvers(events []Event, all map[string]*lease) {
	byOwner := map[string]*lease{}
	for _, l := range all {
		byOwner[l.owner] = l
	}
	var handed []*Event
	for i, e := range events {
		if e.Kind == Acquire && e.Outcome == OK && e.From != "" {
			handed = append(handed, &events[i])
		}
	}
	slices.SortStableFunc(handed, func(a, b *Event) int { return int(a.Return - b.Return) })
	for _, e := range handed {
		from, next := byOwner[e.From], all[e.Hold]
		if from == nil || from == next {
			continue
		}
		from.successor = e
		next.predecessor = from
		next.earliestBegin = max(next.earliestBegin, from.earliestBegin)
		if from.released != nil {
			next.earliestBegin = max(next.earliestBegin, from.released.Call)
		}
		// The server may still have the lease of the holds before.
		next.latestEnd, next.latestEndByResume = max(next.latestEnd, from.latestEnd), max(next.latestEndByResume, from.latestEnd)
	}
}

// handedOver reports whether the hold was handed over.
func (l *lease) handedOver() bool { return l != nil && l.predecessor != nil && l.acquired.From != "" }

// span returns when o may have taken effect. A hold is handed over during the release of the one
// before.
func (o *op) span() span {
	s := span{o.Call, o.Return}
	if o.Kind == Acquire && o.lease.handedOver() {
		if e := o.lease.predecessor.released; e != nil {
			s = span{max(s.from, e.Call), min(s.to, e.Return)}
		}
	}
	return s
}

// handedTo returns until when the server may have a hold that was handed over to e, if e did not
// return it: the process died, or the hold is released in the background.
func (r Rules) handedTo(e Event, all map[string]*lease) (until int64) {
	if !r.HandOver || e.NoWait {
		return 0
	}
	for _, l := range all {
		if l.released != nil && l.successor == nil && (span{l.released.Call, l.released.Return}).meets(e.Call, e.Return) {
			until = max(until, l.latestEnd)
		}
	}
	return until
}

// brokenHandOver describes the first hold that does not continue the hold handed over to it. It
// returns "" if there is none.
func brokenHandOver(events []Event, all map[string]*lease, r Rules) string {
	for _, l := range inOrder(all) {
		if l.acquired.From == "" || l.predecessor == nil && r.Several && besideFailed(l.acquired, events) {
			continue
		}
		if text := l.brokenHandOver(events, r); text != "" {
			return fmt.Sprintf("hand-over to %s: %s", l.acquired.ID, text)
		}
	}
	return ""
}

// besideFailed reports whether an acquire failed at the time of e. With Rules.Several, it may have had
// the lock until the other one failed, and have handed it over to e.
func besideFailed(e Event, events []Event) bool {
	return slices.ContainsFunc(events, func(other Event) bool {
		return other.Kind == Acquire && other.Outcome != OK && (span{other.Call, other.Return}).meets(e.Call, e.Return)
	})
}

func (l *lease) brokenHandOver(events []Event, r Rules) string {
	a, from := l.acquired, l.predecessor
	switch {
	case from == nil:
		return "nobody had the hold"
	case a.MinHold > 0 || from.hasMinHold():
		return "one of the two has a MinHold"
	case from.successor.ID != a.ID:
		return fmt.Sprintf("%s was handed over to %s too", from.acquired.ID, from.successor.ID)
	case from.released == nil || from.released.Call > a.Return || from.released.Outcome == Lost:
		return fmt.Sprintf("%s was not released", from.acquired.ID)
	case a.Fence != 0 && a.Fence <= from.acquired.Fence:
		return fmt.Sprintf("fencing token %d, after %d of %s", a.Fence, from.acquired.Fence, from.acquired.ID)
	case a.Deadline < from.deadline:
		return fmt.Sprintf("it took %v off the lease", time.Duration(from.deadline-a.Deadline))
	case a.Deadline > from.deadline && !r.Watched && a.Return-l.head().acquired.Call < unconfirmed(a.TTL)/2:
		return fmt.Sprintf("the lease grew by %v, although no renewal was due", time.Duration(a.Deadline-from.deadline))
	case a.Deadline > max(from.deadline, a.Return+int64(a.TTL)) && !r.Watched:
		return fmt.Sprintf("the lease lasts for %v", time.Duration(a.Deadline-a.Return))
	}
	return l.unnoticed(events)
}

// head returns the first hold of l's chain of hand-overs: it was acquired at the server.
func (l *lease) head() *lease {
	for l.handedOver() {
		l = l.predecessor
	}
	return l
}

// unconfirmed returns how old the last answer of the server may be for a hand-over.
func unconfirmed(ttl time.Duration) int64 { return int64(min(50*time.Millisecond, ttl/10)) }

// unnoticed describes the hand-over to l of a hold that had ended at the server, as reported to its
// last holder. From the first hand-over after the end on, the server must be asked. It returns ""
// if the server was, or may have been.
func (l *lease) unnoticed(events []Event) string {
	reported := l.earlyLoss(events)
	if reported == nil {
		return ""
	}
	var ended int64 // at the latest
	for _, e := range events {
		if e.Kind == Lose && e.Call <= reported.Return {
			ended = max(ended, e.Return)
		}
	}
	if ended == 0 {
		return ""
	}
	first := l
	for first.handedOver() && first.predecessor.released != nil && first.predecessor.released.Call >= ended {
		first = first.predecessor
	}
	if first == l {
		return ""
	}
	handed := max(first.successor.Return, ended) // the first one after the end, at the latest
	if last := l.predecessor.released.Call; last > handed+unconfirmed(l.acquired.TTL) {
		return fmt.Sprintf("it was handed over until %v after the first hand-over of what the server had lost", time.Duration(last-handed))
	}
	return ""
}

// earlyLoss returns the answer that reported the hold's end before its Deadline, unless a resume
// had taken it over. It returns nil if there is none.
func (l *lease) earlyLoss(events []Event) *Event {
	if l.resumedBy != nil {
		return nil
	}
	for i, e := range events {
		if e.Hold == l.acquired.Hold && e.Outcome == Lost && e.Return < l.deadline && !l.duringFailedResume(e) {
			return &events[i]
		}
	}
	return nil
}

package history

import (
	"fmt"
	"slices"
	"time"
)

// passed is what resumes made of a hold.
type passed struct {
	over   *lease // from which it was taken, or that was handed over; nil: it was acquired
	taken  *Event // the resume that took it over; nil: none did
	doubts []span // when resumes that came to nothing may have taken it over
	lasts  int64  // the server has let go by then, as far as resumes go
}

// pass finds which holds were taken over. Events come in the order of their calls, and so those
// about a hold after those about the one that it was taken from.
func pass(events []Event, all map[string]*lease, r Rules) {
	for i, e := range events {
		l := all[e.Over]
		switch {
		case l == nil:
		case e.doubts(r):
			to := max(l.lastsAt(events, e.Return, r), min(e.Return+int64(e.TTL)+int64(r.Linger), never))
			l.doubts = append(l.doubts, span{e.Call, to})
			l.lasts = to
			l.until = max(l.until, to)
		case e.begins():
			if l.taken == nil {
				l.taken = &events[i]
			}
			next := all[e.Hold]
			next.unsure = next.unsure || l.unsure
			next.permits = l.permits
			next.minHold, next.least = l.minHold, l.least             // by the server it lasts longer: what was left counts from the resume
			next.over, next.lasts = l, l.lastsAt(events, e.Return, r) // a resume does not shorten a lease
			next.until = max(next.until, next.lasts)
		}
	}
}

// lastsAt is when the server will have let go of the hold, after what was heard of it until a time.
func (l *lease) lastsAt(events []Event, at int64, r Rules) int64 {
	last, ttl := int64(0), time.Duration(0)
	for _, e := range events {
		if e.Hold == l.acquired.Hold && e.Call <= at {
			last, ttl = max(last, e.Deadline, e.Return), max(ttl, e.TTL)
		}
	}
	return max(l.lasts, min(last+int64(ttl)+int64(r.Linger), never))
}

// doubts reports whether a resume may have been executed, or be yet, though its client got no hold:
// one that was sent again may find that the hold is gone, and be executed after. It is undone, but
// those who ask meanwhile, or whose undoing dies with its client, are told that the hold is lost.
// In a crowd it may have been executed at some nodes.
func (e Event) doubts(r Rules) bool {
	return e.Kind == Resume && (e.Outcome == Unsettled || e.Outcome == Lost && (r.Crowd || e.Return-e.Call >= attempt(e.TTL)))
}

// doubted reports whether the hold may have been taken over, while a call was under way, by a
// resume that came to nothing: that is undone, or the lease ends.
func (l *lease) doubted(e Event) bool {
	return slices.ContainsFunc(l.doubts, func(d span) bool { return d.meets(e.Call, e.Return) })
}

// again reports whether the acquire was or may have been sent more than once: one that arrives
// after a resume brings the hold back.
func (l *lease) again() bool {
	if l.inherited() && l.over.again() {
		return true
	}
	a := l.acquired
	return a.Kind == Acquire && (a.Resent || a.Return-a.Call >= attempt(a.TTL))
}

// excuses reports whether a call of a hold proves nothing, since it was or may have been taken
// over. Its Lock is not told of that: until it asks, it says that it is held.
func (l *lease) excuses(e Event) bool {
	switch e.Kind {
	case Held:
		return l.taken != nil
	case Release:
		if l.doubted(e) { // the resume's token was there, which is undone later; sent again, the release may have found it all the same
			return e.Outcome == OK || e.Outcome == Lost
		}
		fallthrough
	case Downgrade, Upgrade: // one that was told that the hold is lost may have been executed before
		return l.taken != nil && l.again() && e.Return >= l.taken.Call
	case Renew:
		return e.Outcome == Lost && l.doubted(e) || l.taken != nil && l.again() && e.Return >= l.taken.Call
	}
	return false
}

// shakeChains lets holds that were taken from each other be in doubt together, and reports whether
// that changed any.
func shakeChains(all map[string]*lease) (changed bool) {
	for more := true; more; {
		more = false
		for _, l := range all {
			if l.over != nil && l.doubt != l.over.doubt {
				first := min(l.doubt, l.over.doubt)
				l.doubt, l.over.doubt, more, changed = first, first, true, true
			}
		}
	}
	return changed
}

// resumption is what the model has to know, beside an event itself, of resumes.
type resumption struct {
	old    *lease // of Resume: the hold to take over
	blurry bool   // its mode is not known, for want of an answer to a conversion, or of one that proves anything
	beside bool   // another resume had the same fencing token while it was under way
	raised bool   // the tenure's token may have been raised by a resume that came to nothing, or was not answered yet
}

func resumptionOf(e Event, events []Event, all map[string]*lease, r Rules) resumption {
	f := resumption{old: all[e.Over]}
	for _, other := range events {
		switch {
		case other.ID == e.ID || other.Call > e.Return:
		case other.Kind == Resume:
			f.beside = f.beside || other.Outcome == OK && other.Fence == e.Fence && other.Return >= e.Call
			f.raised = f.raised || other.Owner == e.Owner && (other.doubts(r) || other.Outcome == OK && other.Return >= e.Call)
		case other.Hold == e.Over && (other.Kind == Downgrade || other.Kind == Upgrade):
			f.blurry = f.blurry || other.Outcome == Unsettled || other.Outcome == Lost || f.old != nil && f.old.excuses(other)
		}
	}
	return f
}

// resumes reports whether the model is to see a resume.
func (o *op) resumes(r Rules) bool {
	switch {
	case o.Outcome == OK:
		return o.lease == nil || !o.lease.doubtful(o.Return)
	case o.Outcome == Unsettled || o.doubts(r) || o.old == nil || o.old.doubtful(o.Return):
		return false
	case o.Outcome == Lost:
		return !o.old.doubted(o.Event) && (o.old.taken == nil || !o.old.again())
	}
	return true
}

// resume replaces one hold by another. It is lost only where the hold is gone, or of another mode
// than its handle says.
func (r Rules) resume(s state, o *op) (bool, state) {
	shared := o.Shared && r.Model == ReadWrite
	there := o.old != nil && s.has(o.old.number)
	fits := there && s.writes(o.old.number) != shared
	switch {
	case o.Outcome == Lost:
		return !fits || o.blurry, s
	case o.Outcome != OK || o.old == nil || o.Call > o.old.until:
		return false, s
	case !there && (!o.old.again() || !r.admits(s, o)): // a late acquire may have brought it back
		return false, s
	case there && !fits && (!o.blurry || !shared && s.count() > 1):
		return false, s
	case o.Fence != 0 && !r.mintsAgain(s, o, shared):
		return false, s
	}
	next := s.without(o.old.number).with(o.number, r.mode(o, shared))
	next.tenure, next.owner = s.tenure, o.Owner
	if o.Fence != 0 {
		next.fence, next.tenure = max(s.fence, o.Fence), r.tenure(s, o)
	}
	return true, next
}

// mintsAgain reports whether the fencing token of a resume is a fresh one; a reader's is that of
// the last writer. One that was sent again is told the tenure's as it is by then.
func (r Rules) mintsAgain(s state, o *op, shared bool) bool {
	return o.Fence > s.fence || o.Fence == s.fence && (shared || r.Model == Reentrant && o.beside && o.Fence == s.tenure)
}

// tenure is the token of the tenure when o has got one. In a crowd it is that of the outermost
// hold.
func (r Rules) tenure(s state, o *op) int64 {
	if s.tenure == 0 || !r.Crowd {
		return max(s.tenure, o.Fence)
	}
	return s.tenure
}

// revived looks for a hold that is used after its client was told that it is lost: "" if there is
// none.
func revived(events []Event) string {
	told := map[string]Event{}
	for _, e := range events {
		if was, ok := told[e.Hold]; e.Outcome == Lost && e.Kind != Acquire && e.Kind != Resume && (!ok || e.Return < was.Return) {
			told[e.Hold] = e
		}
	}
	for _, e := range events {
		was, ok := told[e.Hold]
		if ok && e.Outcome == OK && e.Call > was.Return && slices.Contains([]Kind{Held, Renew, Downgrade, Upgrade}, e.Kind) {
			return fmt.Sprintf("%s of %s, after %s told that it is lost", e.Kind, e.Hold, was.ID)
		}
	}
	return ""
}

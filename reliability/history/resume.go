package history

import (
	"fmt"
	"slices"
	"time"
)

// takeOvers are a hold's resumes and hand-over, as a history shows them.
type takeOvers struct {
	over   *lease // its predecessor, resumed or handed over; nil: it was acquired
	taken  *Event // the successful resume of it; nil: none
	doubts []span // of failed resumes: each may have taken it over then
	lasts  int64  // when the server has ended it at the latest, as far as resumes go
}

// findResumes finds the resumed holds. Events are in the order of their calls, so a hold's events
// follow its predecessor's.
func findResumes(events []Event, all map[string]*lease, r Rules) {
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
			next.minHold, next.least = l.minHold, l.least             // at the server it ends later: the rest counts from the resume
			next.over, next.lasts = l, l.lastsAt(events, e.Return, r) // a resume does not shorten a lease
			next.until = max(next.until, next.lasts)
		}
	}
}

// lastsAt returns when the server has ended the hold at the latest, judged by the calls begun until
// at.
func (l *lease) lastsAt(events []Event, at int64, r Rules) int64 {
	last, ttl := int64(0), time.Duration(0)
	for _, e := range events {
		if e.Hold == l.acquired.Hold && e.Call <= at {
			last, ttl = max(last, e.Deadline, e.Return), max(ttl, e.TTL)
		}
	}
	return max(l.lasts, min(last+int64(ttl)+int64(r.Linger), never))
}

// doubts reports whether a resume may have been executed, or may still be, though its client got no
// hold: its first send may be executed after a resend has found the hold ended. The client undoes
// the resume, but calls of the old holder meanwhile report a loss, and so do all later ones if the
// client dies before the undo. In a quorum it may have been executed at some nodes.
func (e Event) doubts(r Rules) bool {
	return e.Kind == Resume && (e.Outcome == Unsettled || e.Outcome == Lost && (r.Crowd || e.Return-e.Call >= attempt(e.TTL)))
}

// doubted reports whether a failed resume may have taken the hold over during e. The resume is
// undone, or the lease ends.
func (l *lease) doubted(e Event) bool {
	return slices.ContainsFunc(l.doubts, func(d span) bool { return d.meets(e.Call, e.Return) })
}

// mayBeResent reports whether the acquire may have been sent more than once. A send executed after
// a resume revives the hold.
func (l *lease) mayBeResent() bool {
	if l.handedOver() && l.over.mayBeResent() {
		return true
	}
	a := l.acquired
	return a.Kind == Acquire && (a.Resent || a.Return-a.Call >= attempt(a.TTL))
}

// excuses reports whether a call of a hold proves nothing because the hold was or may have been
// taken over. Its Lock reports itself held until its next command finds the take-over.
func (l *lease) excuses(e Event) bool {
	switch e.Kind {
	case Held:
		return l.taken != nil
	case Release:
		if l.doubted(e) { // a failed resume had replaced the token; a resend of the release may come after its undoing
			return e.Outcome == OK || e.Outcome == Lost
		}
		fallthrough
	case Downgrade, Upgrade: // the first send may have been executed before a resend found the hold lost
		return l.taken != nil && l.mayBeResent() && e.Return >= l.taken.Call
	case Renew:
		return e.Outcome == Lost && l.doubted(e) || l.taken != nil && l.mayBeResent() && e.Return >= l.taken.Call
	}
	return false
}

// spreadDoubt makes a hold and its predecessor uncertain together, and reports whether any changed.
func spreadDoubt(all map[string]*lease) (changed bool) {
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

// resumeContext holds the facts about resumes that the model needs to judge an event.
type resumeContext struct {
	old         *lease // of Resume: the hold to take over
	modeUnknown bool   // its mode is unknown: a conversion was not answered, or its answer proves nothing
	beside      bool   // another resume had the same fencing token while it was under way
	raised      bool   // a failed or unanswered resume may have raised the tenure's token
}

func resumeContextOf(e Event, events []Event, all map[string]*lease, r Rules) resumeContext {
	f := resumeContext{old: all[e.Over]}
	for _, other := range events {
		switch {
		case other.ID == e.ID || other.Call > e.Return:
		case other.Kind == Resume:
			f.beside = f.beside || other.Outcome == OK && other.Fence == e.Fence && other.Return >= e.Call
			f.raised = f.raised || other.Owner == e.Owner && (other.doubts(r) || other.Outcome == OK && other.Return >= e.Call)
		case other.Hold == e.Over && (other.Kind == Downgrade || other.Kind == Upgrade):
			f.modeUnknown = f.modeUnknown || other.Outcome == Unsettled || other.Outcome == Lost || f.old != nil && f.old.excuses(other)
		}
	}
	return f
}

// resumes reports whether the model judges a resume.
func (o *op) resumes(r Rules) bool {
	switch {
	case o.Outcome == OK:
		return o.lease == nil || !o.lease.uncertainAt(o.Return)
	case o.Outcome == Unsettled || o.doubts(r) || o.old == nil || o.old.uncertainAt(o.Return):
		return false
	case o.Outcome == Lost:
		return !o.old.doubted(o.Event) && (o.old.taken == nil || !o.old.mayBeResent())
	}
	return true
}

// resume replaces one hold by another. It reports a loss only if the hold has ended, or has another
// mode than its handle.
func (r Rules) resume(s state, o *op) (bool, state) {
	shared := o.Shared && r.Model == ReadWrite
	there := o.old != nil && s.has(o.old.number)
	fits := there && s.writes(o.old.number) != shared
	switch {
	case o.Outcome == Lost:
		return !fits || o.modeUnknown, s
	case o.Outcome != OK || o.old == nil || o.Call > o.old.until:
		return false, s
	case !there && (!o.old.mayBeResent() || !r.admits(s, o)): // a late acquire may have revived it
		return false, s
	case there && !fits && (!o.modeUnknown || !shared && s.count() > 1):
		return false, s
	case o.Fence != 0 && !r.mintsAgain(s, o, shared):
		return false, s
	}
	next := s.without(o.old.number).with(o.number, r.mode(o, shared))
	next.tenure, next.owner = s.tenure, o.Owner
	if o.Fence != 0 {
		next.fence, next.tenure = r.highest(s, o), r.tenure(s, o)
	}
	return true, next
}

// mintsAgain reports whether the fencing token of a resume is valid: a new one, for a reader the
// last writer's, or for a resend the tenure's at the time.
func (r Rules) mintsAgain(s state, o *op, shared bool) bool {
	return o.Fence > s.fence || o.Fence == s.fence && (shared || r.Model == Reentrant && o.beside && o.Fence == s.tenure)
}

// tenure returns the token of the tenure once o has one. In a quorum it is the outermost hold's.
func (r Rules) tenure(s state, o *op) int64 {
	if s.tenure == 0 || !r.Crowd {
		return max(s.tenure, o.Fence)
	}
	return s.tenure
}

// revived describes a successful call of a hold after its client had learned of the loss. It
// returns "" if there is none.
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
			return fmt.Sprintf("%s of %s succeeded after %s found it lost", e.Kind, e.Hold, was.ID)
		}
	}
	return ""
}

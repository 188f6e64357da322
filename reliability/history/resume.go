package history

import (
	"fmt"
	"slices"
	"time"
)

// takeOvers are a hold's resumes and hand-over, as a history shows them.
type takeOvers struct {
	predecessor       *lease // resumed by it, or handed over to it; nil: it was acquired
	resumedBy         *Event // the successful resume of it; nil: none
	failedResumes     []span // each may have taken it over then
	latestEndByResume int64  // at the server, by its predecessors and the resumes of it alone
}

// findResumes finds the resumed holds. Events are in the order of their calls, so a hold's events
// follow its predecessor's.
func findResumes(events []Event, all map[string]*lease, r Rules) {
	for i, e := range events {
		l := all[e.Over]
		switch {
		case l == nil:
		case e.mayHaveTakenOver(r):
			to := max(l.latestEndAt(events, e.Return, r), min(e.Return+int64(e.TTL)+int64(r.Linger), never))
			l.failedResumes = append(l.failedResumes, span{e.Call, to})
			l.latestEndByResume = to
			l.latestEnd = max(l.latestEnd, to)
		case e.begins():
			if l.resumedBy == nil {
				l.resumedBy = &events[i]
			}
			next := all[e.Hold]
			next.downgradeUnsettled = next.downgradeUnsettled || l.downgradeUnsettled
			next.permits = l.permits
			next.minHoldEnd = l.minHoldEnd                                                   // at the server it ends later: the rest counts from the resume
			next.predecessor, next.latestEndByResume = l, l.latestEndAt(events, e.Return, r) // a resume does not shorten a lease
			next.latestEnd = max(next.latestEnd, next.latestEndByResume)
		}
	}
}

// latestEndAt returns when the server has ended the hold at the latest, judged by the calls begun
// until at.
func (l *lease) latestEndAt(events []Event, at int64, r Rules) int64 {
	last, ttl := int64(0), time.Duration(0)
	for _, e := range events {
		if e.Hold == l.acquired.Hold && e.Call <= at {
			last, ttl = max(last, e.Deadline, e.Return), max(ttl, e.TTL)
		}
	}
	return max(l.latestEndByResume, min(last+int64(ttl)+int64(r.Linger), never))
}

// mayHaveTakenOver reports whether a resume may have been executed, or may still be, though its
// client got no hold: its first send may be executed after a resend has found the hold ended. The
// client undoes the resume, but calls of the old holder meanwhile report a loss, and so do all
// later ones if the client dies before the undo. In a quorum it may have been executed at some
// nodes.
func (e Event) mayHaveTakenOver(r Rules) bool {
	return e.Kind == Resume && (e.Outcome == Unsettled || e.Outcome == Lost && (r.Crowd || e.outlastsTimeout()))
}

// duringFailedResume reports whether a failed resume may have taken the hold over during e. The
// resume is undone, or the lease ends.
func (l *lease) duringFailedResume(e Event) bool {
	return slices.ContainsFunc(l.failedResumes, func(s span) bool { return s.meets(e.Call, e.Return) })
}

// mayRevive reports whether a send of the acquire may revive the hold after a resume: the acquire
// may have been sent more than once.
func (l *lease) mayRevive() bool {
	if l.handedOver() && l.predecessor.mayRevive() {
		return true
	}
	a := l.acquired
	return a.Kind == Acquire && (a.Resent || a.outlastsTimeout())
}

// excuses reports whether a call of a hold proves nothing because the hold was or may have been
// taken over. Its Lock reports itself held until its next command finds the take-over.
func (l *lease) excuses(e Event) bool {
	switch e.Kind {
	case Held:
		return l.resumedBy != nil
	case Release:
		if l.duringFailedResume(e) { // a failed resume had replaced the token; a resend of the release may come after its undoing
			return e.Outcome == OK || e.Outcome == Lost
		}
		fallthrough
	case Downgrade, Upgrade: // the first send may have been executed before a resend found the hold lost
		return l.resumedBy != nil && l.mayRevive() && e.Return >= l.resumedBy.Call
	case Renew:
		return e.Outcome == Lost && l.duringFailedResume(e) || l.resumedBy != nil && l.mayRevive() && e.Return >= l.resumedBy.Call
	}
	return false
}

// spreadLosses gives a hold and its predecessor the same lossFrom, the earlier one. It reports
// whether any changed.
func spreadLosses(all map[string]*lease) (changed bool) {
	for more := true; more; {
		more = false
		for _, l := range all {
			if l.predecessor != nil && l.lossFrom != l.predecessor.lossFrom {
				first := min(l.lossFrom, l.predecessor.lossFrom)
				l.lossFrom, l.predecessor.lossFrom, more, changed = first, first, true, true
			}
		}
	}
	return changed
}

// resumeContext holds the facts about resumes that the model needs to judge an event.
type resumeContext struct {
	old            *lease // of Resume: the hold to take over
	modeUnknown    bool   // of old: a conversion was not answered, or its answer proves nothing
	sameToken      bool   // another resume, under way at the same time, had the same fencing token
	resumeMayRaise bool   // a failed or concurrent resume may have raised the tenure's token
}

func resumeContextOf(e Event, events []Event, all map[string]*lease, r Rules) resumeContext {
	f := resumeContext{old: all[e.Over]}
	for _, other := range events {
		switch {
		case other.ID == e.ID || other.Call > e.Return:
		case other.Kind == Resume:
			f.sameToken = f.sameToken || other.Outcome == OK && other.Fence == e.Fence && other.Return >= e.Call
			f.resumeMayRaise = f.resumeMayRaise || other.Owner == e.Owner && (other.mayHaveTakenOver(r) || other.Outcome == OK && other.Return >= e.Call)
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
		return o.lease == nil || !o.lease.mayBeLostAt(o.Return)
	case o.Outcome == Unsettled || o.mayHaveTakenOver(r) || o.old == nil || o.old.mayBeLostAt(o.Return):
		return false
	case o.Outcome == Lost:
		return !o.old.duringFailedResume(o.Event) && (o.old.resumedBy == nil || !o.old.mayRevive())
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
	case o.Outcome != OK || o.old == nil || o.Call > o.old.latestEnd:
		return false, s
	case !there && (!o.old.mayRevive() || !r.admits(s, o)): // a late acquire may have revived it
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
	return o.Fence > s.fence || o.Fence == s.fence && (shared || r.Model == Reentrant && o.sameToken && o.Fence == s.tenure)
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

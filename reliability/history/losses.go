package history

import (
	"fmt"
	"slices"
)

// markLosses sets lossFrom of the holds that may have existed during a Lose, and reports whether
// there are any. Earlier answers about them must still be explained.
func markLosses(events []Event, all map[string]*lease, r Rules) bool {
	found := false
	for _, e := range events {
		if e.Kind != Lose {
			continue
		}
		for _, l := range all {
			if (span{l.earliestBegin, l.latestEnd}).meets(e.Call, e.Return) {
				l.lossFrom, found = min(l.lossFrom, e.Call), true
			}
		}
	}
	if r.Model == Reentrant && slices.ContainsFunc(events, func(e Event) bool { return e.Kind == Resume }) {
		// A resume raises the token of all holds of its owner: if one of these may be lost, no
		// token of the owner proves anything.
		for _, l := range all {
			if l.mayBeLost() {
				l.lossFrom = min(l.lossFrom, l.acquired.Call)
			}
		}
	}
	for more := found; more; {
		more = spreadLosses(all)
		for _, e := range events { // a call in flight then may have been executed before, or not at all
			if l := all[e.Hold]; l != nil && e.Call < l.lossFrom && l.mayBeLostAt(e.Return) {
				l.lossFrom, more = e.Call, true
			}
		}
	}
	return found
}

// countLosses counts the holds whose loss is visible: the holder learned of it before the Deadline,
// or somebody else acquired.
func countLosses(events []Event, all map[string]*lease, r Rules) int {
	n := 0
	for _, l := range all {
		if l.mayBeLost() && l.lossSeen(events, all, r) {
			n++
		}
	}
	return n
}

func (l *lease) lossSeen(events []Event, all map[string]*lease, r Rules) bool {
	if l.earlyLoss(events) != nil {
		return true
	}
	end := l.deadline
	if l.released != nil {
		end = min(end, l.released.Call)
	}
	if l.resumedBy != nil {
		end = min(end, l.resumedBy.Call)
	}
	for _, e := range events {
		other := all[e.Hold]
		switch {
		case e.Kind != Acquire || e.Outcome != OK || other == l || e.Return >= end || e.Call < l.acquired.Return:
		case r.Model == Semaphore: // both may have had permits
		case r.Model == Reentrant && e.Owner == l.owner:
		case r.Model == ReadWrite && e.Shared && l.acquired.Shared:
		default:
			return true
		}
	}
	return false
}

// outOfOrder describes two fencing tokens in the wrong order, whatever the servers lost. It returns
// "" if there are none.
//
// It compares minted tokens only. While an old master still serves after a failover, each of the
// two masters repeats its latest token to readers and to acquires that re-enter its tenure. The
// token of the old master is then lower, and the store rejects it, as it should. The same holds for
// a token reserved before the loss and handed over after it. A command sent to one master and
// resent to the other may begin a tenure at both.
func outOfOrder(events []Event, all map[string]*lease, r Rules) string {
	left := leftovers(events, all, r)
	var minted []Event
	for _, e := range events {
		if e.Outcome == OK && e.Fence != 0 && (e.begins() || e.Kind == Upgrade) && r.mints(e, minted, events, left) {
			minted = append(minted, e)
		}
	}
	for _, a := range minted {
		for _, b := range minted {
			if r.Crowd && r.Model == Reentrant && a.Owner == b.Owner {
				continue // nested holds: only the outermost has the lowest
			}
			again := a.Hold == b.Hold && a.Fence == b.Fence // an upgrade of an exclusive hold
			if a.Return < b.Call && b.Fence <= a.Fence && !again && b.From == "" {
				return fmt.Sprintf("fencing token %d of %s, after %d of %s", b.Fence, b.ID, a.Fence, a.ID)
			}
		}
	}
	return ""
}

// mints reports whether the token of e was minted for it. before are the events with minted tokens
// so far.
func (r Rules) mints(e Event, before, events []Event, left map[string]span) bool {
	switch r.Model {
	case ReadWrite:
		return e.Kind == Upgrade && !e.writesAlready(events) || e.Kind != Upgrade && !e.Shared
	case Reentrant:
		for _, b := range before {
			if b.Owner == e.Owner && (b.Fence == e.Fence || b.Fence > e.Fence && b.atTwoMasters(e.Call, events)) {
				return false
			}
		}
		o := &op{Event: e}
		return !o.explained(left, func(other Event) bool { return other.Owner == e.Owner }, events)
	}
	return true
}

// writesAlready reports whether the hold of an upgrade is exclusive already: it then gets its old
// token.
func (e Event) writesAlready(events []Event) bool {
	shared := true
	for _, was := range events {
		if was.Hold == e.Hold && was.Outcome == OK && was.Return <= e.Call {
			switch was.Kind {
			case Acquire, Resume:
				shared = was.Shared
			case Downgrade, Upgrade:
				shared = was.Kind == Downgrade
			}
		}
	}
	return !shared
}

// atTwoMasters reports whether acquire e may have begun a tenure at a second master, lasting until
// that time.
func (e Event) atTwoMasters(until int64, events []Event) bool {
	return e.Resent && until <= e.Return+int64(e.TTL) && slices.ContainsFunc(events, func(lose Event) bool {
		return lose.Kind == Lose && (span{lose.Call, lose.Return}).meets(e.Call, e.Return)
	})
}

package history

import "fmt"

// markShaky marks the holds that were under way when a server may have lost its state, and tells whether there are any.
func markShaky(events []Event, all map[string]*lease) bool {
	found := false
	for _, e := range events {
		if e.Kind != Lose {
			continue
		}
		for _, l := range all {
			if (span{l.acquired.Call, l.until}).meets(e.Call, e.Return) {
				l.shaky, found = true, true
			}
		}
	}
	return found
}

// lost counts the shaky holds of which it shows: their holder was told before the Deadline, or somebody else got in.
func lost(events []Event, all map[string]*lease, r Rules) int {
	n := 0
	for _, l := range all {
		if l.shaky && l.shows(events, all, r) {
			n++
		}
	}
	return n
}

func (l *lease) shows(events []Event, all map[string]*lease, r Rules) bool {
	end := l.deadline
	if l.released != nil {
		end = min(end, l.released.Call)
	}
	for _, e := range events {
		other := all[e.Hold]
		switch {
		case other == l && e.Outcome == Lost && e.Return < l.deadline:
			return true
		case e.Kind != Acquire || e.Outcome != OK || other == l || e.Return >= end || e.Call < l.acquired.Return:
		case r.Model == Reentrant && e.Owner == l.owner:
		case r.Model == ReadWrite && e.Shared && l.acquired.Shared:
		default:
			return true
		}
	}
	return false
}

// outOfOrder looks for fencing tokens that do not follow each other, whatever the servers lost: "" if there are none.
func outOfOrder(events []Event, r Rules) string {
	var minted []Event
	for _, e := range events {
		if e.Outcome == OK && e.Fence != 0 && (e.Kind == Acquire || e.Kind == Upgrade) {
			minted = append(minted, e)
		}
	}
	for _, a := range minted {
		for _, b := range minted {
			if a.Return >= b.Call || a.Hold == b.Hold {
				continue
			}
			same := r.Model == Reentrant && a.Owner == b.Owner || r.Model == ReadWrite && b.Kind == Acquire && b.Shared
			if same && r.Crowd && r.Model == Reentrant {
				continue // of nested holds only the outermost has the lowest
			}
			if b.Fence < a.Fence || b.Fence == a.Fence && !same {
				return fmt.Sprintf("fencing token %d of %s, after %d of %s", b.Fence, b.ID, a.Fence, a.ID)
			}
		}
	}
	return ""
}

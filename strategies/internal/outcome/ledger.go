package outcome

// Verdict is what a late answer tells of its send.
type Verdict uint8

// What a late answer tells of the send of an acquire.
const (
	// Unclear: nothing. It may still be executed.
	Unclear Verdict = iota
	// Refused: it was executed and changed nothing, or never will be executed.
	Refused
	// Won: it made the hold.
	Won
)

// ledger counts what may still become of the sends of one acquire whose answers did not come in time. The zero ledger has
// none.
type ledger struct {
	open    int // sends that may still be executed, as far as their answers tell
	pending int // those of them whose answers can still come
	found   int // executions that showed otherwise than by an answer, of sends that count as open
	present int // executions that made a hold which nobody has removed yet, as far as is known
}

// settled reports whether nothing is there and nothing can come any more.
func (l ledger) settled() bool { return l.present == 0 && l.open <= l.found }

// unanswered counts a send whose answer did not come, and that may come late.
func (l ledger) unanswered(pending bool) ledger {
	l.open++
	if pending {
		l.pending++
	}
	return l
}

// answered takes in a late answer.
func (l ledger) answered(v Verdict) ledger {
	l.pending--
	switch {
	case v == Unclear:
		return l
	case v == Refused:
	case l.found > 0:
		l.found-- // that was the one
	default:
		l.present++
	}
	l.open--
	return l
}

// executed takes in that an open send was seen to have been executed, and that what it made is accounted for.
func (l ledger) executed() ledger {
	if l.present > 0 {
		l.present--
	} else {
		l.found++
	}
	return l
}

// absent takes in that nothing was there, asked when the ledger was l0.
func (l ledger) absent(l0 ledger) ledger {
	l.present = max(l.present-l0.present, 0)
	return l
}

package resolve

// Verdict is the meaning of a late reply to the send of an acquire.
type Verdict uint8

const (
	// Unclear: nothing. It may still be executed.
	Unclear Verdict = iota
	// Refused: it was executed and changed nothing, or never will be executed.
	Refused
	// Acquired: it made the hold.
	Acquired
)

// ledger counts the unanswered sends of one acquire and their known outcomes. The zero ledger has
// none.
type ledger struct {
	open    int // sends without an answer, or with an unclear one
	pending int // of these, sends whose answer may still come
	found   int // of these, sends known to have been executed without their answer
	present int // holds known to have been created and not known to be removed
}

// settled reports whether nothing is there and nothing can come any more.
func (l ledger) settled() bool { return l.present == 0 && l.open <= l.found }

// unanswered counts a send without an answer. pending: the answer may come late.
func (l ledger) unanswered(pending bool) ledger {
	l.open++
	if pending {
		l.pending++
	}
	return l
}

// answered records a late answer.
func (l ledger) answered(v Verdict) ledger {
	l.pending--
	switch {
	case v == Unclear:
		return l
	case v == Refused:
	case l.found > 0:
		l.found-- // this send is the one known to have been executed
	default:
		l.present++
	}
	l.open--
	return l
}

// executed records the execution of an open send. Its hold is kept, or was removed.
func (l ledger) executed() ledger {
	if l.present > 0 {
		l.present--
	} else {
		l.found++
	}
	return l
}

// absent records that there was no hold at the time of l0.
func (l ledger) absent(l0 ledger) ledger {
	l.present = max(l.present-l0.present, 0)
	return l
}

package redlock

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// tally is what became of an operation on the nodes, so far.
type tally struct {
	done    int
	pending int          // have not answered
	refused []error      // answers that are no failures: held by another, not held any more; by node
	failed  []*NodeError // those that are, and those that have not answered
}

// add takes in what a node did; errUnanswered where it did nothing yet.
func (t *tally) add(n *node, err error) {
	switch {
	case err == nil:
		t.done++
	case errors.Is(err, locker.ErrNotAcquired), errors.Is(err, locker.ErrNotHeld):
		t.refused = append(t.refused, err)
	default:
		if err == errUnanswered { //nolint:errorlint // set by this package itself
			t.pending++
		}
		t.failed = append(t.failed, n.error(err))
	}
}

// contended is how many refusals name a holder.
func (t *tally) contended() (n int) {
	for _, err := range t.refused {
		if errors.Is(err, locker.ErrNotAcquired) {
			n++
		}
	}
	return n
}

// quorumError makes the error of what missed the quorum of n nodes because of failures.
func (t *tally) quorumError(n, quorum int) *QuorumError {
	e := &QuorumError{Done: t.done, Refused: len(t.refused), Of: n, Needed: quorum, Nodes: t.failed}
	var lasting, others, unanswered []error
	for _, f := range t.failed {
		switch {
		case f.Err == errUnanswered: //nolint:errorlint // set by this package itself
			unanswered = append(unanswered, f)
		case locker.Passing(f.Err):
			others = append(others, f)
		default:
			lasting = append(lasting, f)
		}
	}
	others = append(others, unanswered...) // what says most comes first
	e.decisive = others
	if len(lasting) > n-quorum || len(others) == 0 {
		e.decisive = lasting
	}
	return e
}

// contention is the refusal of a lock that enough nodes would have given if others did not hold it there.
func (t *tally) contention(name string, quorum int, jitter time.Duration) *locker.ContentionError {
	type holder struct{ owner, note string }
	held := &locker.ContentionError{Name: name, Jitter: jitter}
	votes, most := map[holder]int{}, 0
	var left []time.Duration
	for _, err := range t.refused {
		at, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			continue
		}
		who := holder{at.Owner, at.Note}
		if votes[who]++; votes[who] > most {
			most, held.Owner, held.Note = votes[who], at.Owner, at.Note
		}
		if held.Channel.IsZero() {
			held.Channel = at.Channel // of the first node that has one, so that the waiters stay with it
		}
		left = append(left, at.RetryAfter)
	}
	held.RetryAfter = enough(left, quorum-t.done)
	return held
}

// enough is when k of the leases that are left are over. Zero is unknown, and comes last.
func enough(left []time.Duration, k int) time.Duration {
	left = slices.DeleteFunc(left, func(d time.Duration) bool { return d <= 0 })
	if k < 1 || k > len(left) {
		return 0
	}
	slices.Sort(left)
	return left[k-1]
}

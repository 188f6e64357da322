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
	refused []error      // answers that are no failures, as held by another, or not held any more; by node
	absent  []*NodeError // failing nodes that refused because they no longer hold the lock
	failed  []*NodeError // those that are, and those that have not answered
}

// add takes in what a node did; errUnanswered where it did nothing yet. refused: an error is an
// answer, and no failure.
func (t *tally) add(n *quorumNode, err error, refused bool) {
	switch {
	case err == nil:
		t.done++
	case refused:
		t.refused = append(t.refused, err)
	default:
		if errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld) {
			err = errors.New(err.Error()) // a quorum says such a thing only of the whole
		}
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

// unsupported tells whether there is no such operation at more nodes than the quorum can do
// without, or at all that said anything.
func (t *tally) unsupported(spare int) bool {
	n := 0
	for _, e := range t.failed {
		if errors.Is(e, errors.ErrUnsupported) {
			n++
		}
	}
	return n > spare || n > 0 && t.done == 0 && n == len(t.failed)
}

// quorumError makes the error of what missed the quorum of n nodes because of failures.
func (t *tally) quorumError(n, quorum int) *QuorumError {
	e := &QuorumError{Done: t.done, Refused: len(t.refused) - len(t.absent), Of: n, Needed: quorum, Nodes: slices.Concat(t.failed, t.absent)}
	slices.SortFunc(e.Nodes, func(a, b *NodeError) int { return a.Node - b.Node })
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

// contention is the refusal of a lock that enough nodes would have given if others did not hold it
// there.
func (t *tally) contention(name string, quorum int, jitter time.Duration) *locker.ContentionError {
	type holder struct{ owner, note string }
	held := &locker.ContentionError{Name: name, Jitter: jitter}
	votes, most := map[holder]int{}, 0
	heard := map[holder]*locker.ContentionError{} // the first node that has a channel, so that the waiters stay with it
	var left, again []time.Duration
	for _, err := range t.refused {
		at, ok := errors.AsType[*locker.ContentionError](err)
		if !ok {
			continue
		}
		who := holder{at.Owner, at.Note}
		if votes[who]++; votes[who] > most {
			most, held.Owner, held.Note = votes[who], at.Owner, at.Note
		}
		if heard[who] == nil && !at.Channel.IsZero() {
			heard[who] = at
		}
		left, again = append(left, at.Left), append(again, at.RetryAfter)
		held.Ordered = held.Ordered || at.Ordered
	}
	if at := heard[holder{held.Owner, held.Note}]; at != nil {
		held.Channel = at.Channel
	}
	held.Left, held.RetryAfter = enough(left, quorum-t.done), enough(again, quorum-t.done)
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

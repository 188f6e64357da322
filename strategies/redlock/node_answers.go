package redlock

import (
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// nodeAnswers is what the nodes answered to one operation so far.
type nodeAnswers struct {
	done    int
	pending int          // how many have not answered
	refused []error      // answers that are no failures: held by another, or not held any more
	absent  []*NodeError // failing nodes that refused because they no longer hold the lock
	failed  []*NodeError // the nodes that failed, and those that have not answered
}

// add adds a node's answer; errUnanswered stands for none. refused says that err is an answer and
// no failure.
func (t *nodeAnswers) add(n *quorumNode, err error, refused bool) {
	switch {
	case err == nil:
		t.done++
	case refused:
		t.refused = append(t.refused, err)
	default:
		if errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld) {
			err = errors.New(err.Error()) // only the error of the whole operation matches these
		}
		if err == errUnanswered { //nolint:errorlint // set by this package itself
			t.pending++
		}
		t.failed = append(t.failed, n.error(err))
	}
}

// unsupported reports whether so many nodes do not support the operation that the quorum cannot do
// without them, or all that answered.
func (t *nodeAnswers) unsupported(spare int) bool {
	n := 0
	for _, e := range t.failed {
		if errors.Is(e, errors.ErrUnsupported) {
			n++
		}
	}
	return n > spare || n > 0 && t.done == 0 && n == len(t.failed)
}

// quorumError returns the error of an operation that missed the quorum of n nodes because nodes
// failed.
func (t *nodeAnswers) quorumError(n, quorum int) *QuorumError {
	e := &QuorumError{Done: t.done, Refused: len(t.refused) - len(t.absent), Of: n, Needed: quorum, Nodes: slices.Concat(t.failed, t.absent)}
	slices.SortFunc(e.Nodes, func(a, b *NodeError) int { return a.Node - b.Node })
	var lasting, others, unanswered []error
	for _, f := range t.failed {
		switch {
		case f.Err == errUnanswered: //nolint:errorlint // set by this package itself
			unanswered = append(unanswered, f)
		case driver.Transient(f.Err):
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

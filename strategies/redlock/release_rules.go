package redlock

import (
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// releaseVerdict returns the error of a release, or nil if a quorum has released. Too few
// nodes that held the lock are a loss; one that has not answered may have held it.
func releaseVerdict(t *nodeAnswers, f quorumFacts) error {
	missed := t.quorumError(f.nodes, f.quorum)
	switch {
	case t.done >= f.quorum:
		return nil
	case t.done+len(t.failed) < f.quorum:
		return fmt.Errorf("%w: %d of %d nodes held it, %d needed%s", locker.ErrLost, t.done, f.nodes, f.quorum, listed(missed.Nodes))
	case t.pending > 0:
		return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, missed)
	default:
		return missed
	}
}

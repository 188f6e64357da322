package redlock

import (
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
)

// acquireVerdict says why an attempt to acquire missed the quorum. mayChange reports whether answers
// that are missing might change it.
func (t *nodeAnswers) acquireVerdict() (err error, mayChange bool) { //nolint:revive // the error is what it returns
	refused := len(t.refused)
	outOfReach := t.done+t.pending < t.quorum
	// Would the lock have been acquired without the other holders? If nothing has failed, only they
	// stood in the way.
	if refused > 0 && (t.done+refused >= t.quorum || outOfReach && len(t.failed) == t.pending) {
		return t.contention(), false
	}
	return t.quorumError(), refused > 0 && t.done+refused+t.pending >= t.quorum
}

// resumeVerdict is acquireVerdict for an attempt that resumes a hold. tookOver: a node has given its
// lock.
func (t *nodeAnswers) resumeVerdict(tookOver bool) (err error, mayChange bool) { //nolint:revive // the error is what it returns
	refused, spare := len(t.refused), t.nodes-t.quorum
	if refused > spare && !tookOver {
		return locker.ErrNotHeld, false
	}
	err = t.quorumError()
	if tookOver || t.pending > 0 {
		err = fmt.Errorf("%w: %w; the resume is undone", locker.ErrUnknownOutcome, err)
	}
	return err, !tookOver && refused+t.pending > spare
}

// upgradeVerdict returns the error of an upgrade that did not succeed; missed says how many nodes
// did it, or that the lock is lost. The upgrade was refused if it would have succeeded without the
// other holders.
func (t *nodeAnswers) upgradeVerdict(missed error) error {
	refused := t.contended()
	switch {
	case isNotHeld(missed):
		return missed
	case refused > 0 && t.done+refused >= t.quorum:
		return t.contention()
	case t.done >= t.quorum:
		return fmt.Errorf("they did not stay exclusive until the Deadline: %w", missed)
	}
	return missed
}

// releaseVerdict returns the error of a release, or nil if a quorum has released. Too few
// nodes that held the lock are a loss; one that has not answered may have held it.
func (t *nodeAnswers) releaseVerdict() error {
	missed := t.quorumError()
	switch {
	case t.done >= t.quorum:
		return nil
	case t.done+len(t.failed) < t.quorum:
		return fmt.Errorf("%w: %d of %d nodes held it, %d needed%s", locker.ErrLost, t.done, t.nodes, t.quorum, listed(missed.Nodes))
	case t.pending > 0:
		return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, missed)
	default:
		return missed
	}
}

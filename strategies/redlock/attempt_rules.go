package redlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// minGrace is the least time that a verdict waits for missing answers that may change it: a node in
// another zone, or whose connection has to be made, takes that much longer than the first.
const minGrace = 20 * time.Millisecond

// asLongAgain returns how much longer to wait for missing answers after took: as long again, but
// neither so short that answers on their way come too late, nor longer than timeout.
func asLongAgain(took, timeout time.Duration) time.Duration {
	return min(max(took, minGrace), timeout)
}

// outcome returns what a node did for an attempt so far: nil if it gave its lock, errUnanswered if
// it has not answered, or why it did not.
func (v *quorumView) outcome(n *nodeView) error {
	switch {
	case n.queued:
		return errStalled
	case n.asking:
		return errUnanswered
	case !n.held || n.err != nil:
		return n.err
	case !v.isLive(n):
		return errEnded
	case v.fence > 0 && !v.counts(n):
		return errUnanswered // its counter is being raised
	}
	return nil
}

// refuses reports whether a node's error is an answer and no failure: the lock is held by another
// or, when it was asked to resume, it does not hold what it was to hand over. A node that says
// ErrLost had taken it over, and lost it.
func refuses(err error, resume bool) bool {
	return errors.Is(err, locker.ErrNotAcquired) ||
		resume && errors.Is(err, locker.ErrNotHeld) && !errors.Is(err, locker.ErrLost)
}

// quorumFacts is what a verdict depends on beside the answers.
type quorumFacts struct {
	name   string // of the lock
	nodes  int
	quorum int
	jitter time.Duration // for those who wait

	resume   bool // of an attempt: it resumes a hold
	tookOver bool // of an attempt: a node has given its lock
}

// verdict says why an attempt missed the quorum. mayChange reports whether answers that are missing
// might change it.
func verdict(t *nodeAnswers, f quorumFacts) (err error, mayChange bool) { //nolint:revive // the error is what it returns
	if f.resume {
		return resumeVerdict(t, f)
	}
	refused := len(t.refused)
	outOfReach := t.done+t.pending < f.quorum
	// Would the lock have been acquired without the other holders? If nothing has failed, only they
	// stood in the way.
	if refused > 0 && (t.done+refused >= f.quorum || outOfReach && len(t.failed) == t.pending) {
		return t.contention(f.name, f.quorum, f.jitter), false
	}
	return t.quorumError(f.nodes, f.quorum), refused > 0 && t.done+refused+t.pending >= f.quorum
}

// resumeVerdict is verdict for an attempt that resumes a hold.
func resumeVerdict(t *nodeAnswers, f quorumFacts) (err error, mayChange bool) { //nolint:revive // the error is what it returns
	refused, spare := len(t.refused), f.nodes-f.quorum
	if refused > spare && !f.tookOver {
		return locker.ErrNotHeld, false
	}
	err = t.quorumError(f.nodes, f.quorum)
	if f.tookOver || t.pending > 0 {
		err = fmt.Errorf("%w: %w; what was taken over is given back", locker.ErrUnknownOutcome, err)
	}
	return err, !f.tookOver && refused+t.pending > spare
}

// sameServer finds two nodes that are one server: the node refuses and names the attempt's owner as
// the holder, although that owner was made for this attempt. Equal addresses would prove nothing:
// clients behind a dialer or a tunnel may all report the same one. other is -1 if the node that
// gave its lock has yet to answer.
func sameServer(nodes []nodeView, owner string) (node, other int, found bool) {
	for i := range nodes {
		held, refused := errors.AsType[*locker.ContentionError](nodes[i].err)
		if !refused || held.Owner != owner {
			continue
		}
		for j := range nodes {
			if j != i && nodes[j].held {
				return i, j, true
			}
		}
		return i, -1, true
	}
	return 0, 0, false
}

package redlock

import (
	"errors"
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

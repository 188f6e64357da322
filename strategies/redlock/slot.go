package redlock

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// slot is what an attempt, or the lock that it became, knows about one node. The hold's mutex
// guards it.
type slot struct {
	node *quorumNode
	held *nodeLock // nil: none, as far as is known
	err  error     // why nothing is held, or why the counter of what is held was not raised

	asking  bool          // an acquire is in flight
	queued  bool          // that acquire waits for earlier calls of the node; nothing was sent
	askedAt time.Time     // when the last acquire was sent that is given the benefit of the doubt
	behind  bool          // nobody waits for that acquire; the node counts it
	ending  bool          // a release is in flight, the attempt or lock being over
	idle    chan struct{} // closed when no call is in flight any more; nil: nobody waits for that

	takenOver bool // the node said that it does not hold what a Handle names
	// when what a Handle names ended by the local clock: it may have been taken over before; zero:
	// it did not
	expired time.Time
}

// view sets n to what the rules look at. The mutex is held.
func (s *slot) view(n *nodeView) {
	*n = nodeView{
		asking: s.asking, queued: s.queued, askedAt: s.askedAt, err: s.err, takenOver: s.takenOver, expired: s.expired,
	}
	if p := s.held; p != nil {
		n.held, n.exclusive, n.named, n.fence = true, p.mode == locker.Exclusive, p.named, p.fence
		n.deadline, n.renewed = p.lock.Deadline(), p.renewed
	}
}

// setBehind says whether nobody waits for the acquire that is in flight. The mutex is held.
func (s *slot) setBehind(behind bool) {
	switch {
	case s.behind == behind:
		return
	case behind:
		s.node.behind.Add(1)
	default:
		s.node.behind.Add(-1)
	}
	s.behind = behind
}

// hasCall reports whether an acquire or a release is in flight. The mutex is held.
func (s slot) hasCall() bool { return s.asking || s.ending }

// callEnds returns a channel that is closed once no call is in flight; nil if none is now. The
// mutex is held.
func (s *slot) callEnds() <-chan struct{} {
	if !s.hasCall() {
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	return s.idle
}

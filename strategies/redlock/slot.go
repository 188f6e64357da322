package redlock

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// slot is an attempt's or its lock's knowledge of one node. The hold's mutex guards it.
type slot struct {
	node *quorumNode
	held *nodeLock // nil: none, as far as is known
	err  error     // why nothing is held, or held's counter was not raised

	asking    bool          // an acquire is in flight
	queued    bool          // the acquire waits for earlier calls of the node; nothing was sent
	askedAt   time.Time     // begin of the acquire, if the node may count before the answer; zero: it may not
	unawaited bool          // nobody waits for the acquire; the node counts it
	ending    bool          // a release is in flight, the attempt or lock being over
	idle      chan struct{} // closed when no call is in flight any more; nil: nobody waits

	takenOver bool // the node denied a node lock that a Handle names
	// when a node lock named by a Handle expired locally, maybe taken over before; zero: none
	expired time.Time
}

// view fills n in. The mutex is held.
func (s *slot) view(n *nodeView) {
	*n = nodeView{
		asking: s.asking, queued: s.queued, askedAt: s.askedAt, err: s.err, takenOver: s.takenOver, expired: s.expired,
	}
	if p := s.held; p != nil {
		n.held, n.exclusive, n.named, n.fence = true, p.mode == locker.Exclusive, p.named, p.fence
		n.deadline, n.renewed = p.lock.Deadline(), p.renewed
	}
}

// setUnawaited records whether nobody waits for the acquire in flight. The mutex is held.
func (s *slot) setUnawaited(unawaited bool) {
	switch {
	case s.unawaited == unawaited:
		return
	case unawaited:
		s.node.unawaited.Add(1)
	default:
		s.node.unawaited.Add(-1)
	}
	s.unawaited = unawaited
}

// hasCall reports whether an acquire or a release is in flight. The mutex is held.
func (s slot) hasCall() bool { return s.asking || s.ending }

// callEnds returns a channel closed once no call is in flight; nil if none is now. The mutex is
// held.
func (s *slot) callEnds() <-chan struct{} {
	if !s.hasCall() {
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	return s.idle
}

package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// nodeLoad describes a node's unanswered calls.
type nodeLoad struct {
	acquires  int           // acquires in flight
	unawaited int           // of those, acquires nobody waits for
	silence   time.Duration // since the first call after the last answer began; 0: none did
}

const (
	// maxUnanswered limits the acquires in flight at a node silent for an AttemptTimeout.
	maxUnanswered = 8
	// maxUnawaited limits the unawaited acquires at a node silent for a fortieth of an
	// AttemptTimeout. With twice as many, the silence may be half as long, and so on. Without this
	// bound, a caller that goes on without the node would add thousands in an AttemptTimeout.
	maxUnawaited = 32
)

// full reports whether the node is not to be asked. patience is the AttemptTimeout.
func (l nodeLoad) full(patience time.Duration) bool {
	unawaited := l.unawaited >= maxUnawaited && l.silence > patience/40*maxUnawaited/time.Duration(l.unawaited)
	return unawaited || l.acquires >= maxUnanswered && l.silence > patience
}

// answered reports whether the outcome of an acquire shows a live server. A refused connection does
// not, nor does an unsent or abandoned command.
func answered(err error) bool {
	return errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld) || !driver.Transient(err)
}

// beginAcquire counts an acquire, if it may be sent. Otherwise returned is closed when one of those
// in flight returns. needed: there is no quorum without the node; then unawaited acquires do not
// count against it.
func (n *quorumNode) beginAcquire(ctx context.Context, patience time.Duration,
	needed bool) (returned <-chan struct{}, ok bool) {
	n.mu.Lock()
	l := n.load(time.Now())
	if needed {
		l.unawaited = 0
	}
	if l.full(patience) {
		defer n.mu.Unlock()
		if n.acquireReturned == nil {
			n.acquireReturned = make(chan struct{})
		}
		return n.acquireReturned, false
	}
	n.acquires++
	n.mu.Unlock()
	n.beginCall(ctx, patience)
	return nil, true
}

// endAcquire ends an acquire counted by beginAcquire.
func (n *quorumNode) endAcquire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acquires--
	if n.acquireReturned != nil {
		close(n.acquireReturned)
		n.acquireReturned = nil
	}
}

// answering returns how many nodes do not have too many unanswered calls.
func answering(nodes []*quorumNode, patience time.Duration) (n int) {
	now := time.Now()
	for _, node := range nodes {
		node.mu.Lock()
		if !node.load(now).full(patience) {
			n++
		}
		node.mu.Unlock()
	}
	return n
}

// load returns the node's load. The mutex is held.
func (n *quorumNode) load(now time.Time) nodeLoad {
	return nodeLoad{n.acquires, int(n.unawaited.Load()), n.silence(now)}
}

package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// nodeLoad is what a node has yet to answer.
type nodeLoad struct {
	acquires int           // acquires in flight
	behind   int           // of those, the ones that nobody waits for: their attempts were decided without them
	silence  time.Duration // since the first acquire after the last answer began; 0: none has
}

const (
	// maxUnanswered is how many acquires may be in flight at a node that has been silent for an
	// AttemptTimeout.
	maxUnanswered = 8
	// maxBehind is how many acquires that nobody waits for may be in flight at a node that has been
	// silent for a fortieth of an AttemptTimeout. With twice as many, the silence may be half as
	// long, and so on. Without this bound, a caller that goes on without the node would add
	// thousands in an AttemptTimeout.
	maxBehind = 32
)

// full reports whether the node is not to be asked. patience is the AttemptTimeout.
func (l nodeLoad) full(patience time.Duration) bool {
	behind := l.behind >= maxBehind && l.silence > patience/40*maxBehind/time.Duration(l.behind)
	return behind || l.acquires >= maxUnanswered && l.silence > patience
}

// answered reports whether the outcome of an acquire shows that the node's server is alive. A
// refused connection does not, nor does a command that never left the client or was given up.
func answered(err error) bool {
	return errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld) || !driver.Transient(err)
}

// beginAcquire counts an acquire, and reports whether it may be sent. needed says that there is no
// quorum without the node; then acquires that nobody waits for do not count against it.
func (n *quorumNode) beginAcquire(ctx context.Context, patience time.Duration, needed bool) bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.load(now)
	if needed {
		l.behind = 0
	}
	if l.full(patience) {
		return false
	}
	n.idle = false
	n.acquires++
	n.callBegan(ctx, now, patience)
	return true
}

// endAcquire ends what beginAcquire counted. It is deferred, and turns a panic into an error.
func (n *quorumNode) endAcquire(ctx context.Context, err *error, patience time.Duration) { //nolint:gocritic // it sets it
	if v := recover(); v != nil {
		*err = panicked(v)
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.acquires--
	if n.acquireReturned != nil {
		close(n.acquireReturned)
		n.acquireReturned = nil
	}
	if answered(*err) {
		n.silentSince, n.idle = now, true
	}
	n.callReturned(ctx, now, *err, patience)
}

// nextReturn returns a channel that is closed when the next acquire returns.
func (n *quorumNode) nextReturn() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.acquireReturned == nil {
		n.acquireReturned = make(chan struct{})
	}
	return n.acquireReturned
}

// crowded reports whether beginAcquire would refuse an acquire.
func (n *quorumNode) crowded(patience time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.load(time.Now()).full(patience)
}

// answering returns how many nodes do not have too many unanswered calls.
func answering(nodes []*quorumNode, patience time.Duration) (n int) {
	for _, node := range nodes {
		if !node.crowded(patience) {
			n++
		}
	}
	return n
}

// load returns the node's load. While nobody asks it, it is not silent. The mutex is held.
func (n *quorumNode) load(now time.Time) nodeLoad {
	if n.acquires == 0 || n.idle {
		n.silentSince = now
	}
	return nodeLoad{n.acquires, int(n.behind.Load()), now.Sub(n.silentSince)}
}

package redlock

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// quorumNode is one node of a quorum.
type quorumNode struct {
	inner  locker.Locker
	index  int
	name   string                           // from Config.Names
	source atomic.Pointer[locktrace.Source] // from its Locker, an attempt or a lease; nil: not known yet

	quorum    *quorumHealth
	unawaited atomic.Int64 // see nodeLoad

	mu              sync.Mutex
	calls           int           // calls of any kind in flight
	acquires        int           // acquires in flight
	acquireReturned chan struct{} // closed when an acquire returns; nil: nobody waits
	silentSince     time.Time     // when the first call after the last answer began; zero: none did
	health          nodeHealth
	reported        *healthReport // the failure as reported; nil: none, or no call was traced since it began
}

// acquire asks the node for a lock, after beginAcquire. Its callees need a deep stack: with few
// frames above them, fewer stacks must grow.
func (n *quorumNode) acquire(ctx context.Context, req locker.Request,
	patience time.Duration) (lock *locker.Lock, err error) {
	defer n.endAcquire()
	defer n.endCall(ctx, &err, patience)
	lock, err = n.inner.Acquire(n.learning(ctx), req)
	if err == nil && lock != nil && n.source.Load() == nil {
		n.learn(lock.Hold().Source())
	}
	return lock, err
}

func panicked(v any) error { return fmt.Errorf("it panicked: %v", v) }

// learning returns ctx with a Trace for learning the node's source from its attempt, while the
// source is unknown.
func (n *quorumNode) learning(ctx context.Context) context.Context {
	if n.source.Load() != nil {
		return ctx
	}
	return locktrace.With(ctx, &locktrace.Trace{
		Attempt: func(_ context.Context, info locktrace.AttemptInfo) { n.learn(info.Source) },
	})
}

// learn records the node's source, unless it is known already. A zero source says nothing.
func (n *quorumNode) learn(s locktrace.Source) {
	if s != (locktrace.Source{}) {
		n.source.CompareAndSwap(nil, &s)
	}
}

// where returns the node's source; zero: it is not known.
func (n *quorumNode) where() (source locktrace.Source) {
	if known := n.source.Load(); known != nil {
		source = *known
	}
	return source
}

// error returns err as the node's, without the OpError around it: the operation is the quorum's.
func (n *quorumNode) error(err error) *NodeError {
	e := &NodeError{Node: n.index, Name: n.name, Err: unwrapOp(err)}
	e.Address = n.where().Address
	e.Name = cmp.Or(e.Name, e.Address)
	return e
}

// unwrapOp returns err without the OpError around it.
func unwrapOp(err error) error {
	if op, ok := err.(*locker.OpError); ok { //nolint:errorlint // only the outermost
		return op.Err
	}
	return err
}

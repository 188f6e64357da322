package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// node is one of the Lockers.
type node struct {
	inner  locker.Locker
	index  int
	name   string                        // of the Config
	stated locker.Source                 // by the Locker itself
	source atomic.Pointer[locker.Source] // once an attempt has told it

	mu     sync.Mutex
	calls  int           // acquires that have not returned
	since  time.Time     // when the silence began: at the first acquire after the last answer
	idle   bool          // no acquire began since the last answer
	ended  chan struct{} // closed when one returns; nil: nobody waits for that
	behind atomic.Int64  // see load

	quorum    *quorumHealth
	health    health
	open      int       // calls of any kind that have not returned
	openSince time.Time // when the first of them began, or the last succeeded
}

// load is what a node has yet to answer.
type load struct {
	calls   int           // acquires that have not returned
	behind  int           // acquires that nobody waits for: their attempts were decided without them
	silence time.Duration // since the first acquire after the last answer began; 0: none has
}

const (
	// maxUnanswered is how many acquires may be under way at a node that has been silent for an
	// AttemptTimeout.
	maxUnanswered = 8
	// maxBehind is how many acquires that nobody waits for may be under way at a node that has been
	// silent for a fortieth of that: a caller that goes on without the node would add thousands in
	// an AttemptTimeout. With twice as many, the silence may be half as long, and so on: a fast
	// caller adds little more.
	maxBehind = 32
)

// full reports whether the node is not to be asked. patience is the AttemptTimeout.
func (l load) full(patience time.Duration) bool {
	behind := l.behind >= maxBehind && l.silence > patience/40*maxBehind/time.Duration(l.behind)
	return behind || l.calls >= maxUnanswered && l.silence > patience
}

// answered reports whether the outcome of an acquire shows that the node's server is alive. A
// connection that was refused does not, nor does a command that never left the client, nor one that
// was given up.
func answered(err error) bool {
	return errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld) || !locker.Passing(err)
}

var (
	errNoLock  = errors.New("its Locker returned neither a lock nor an error")
	errNoLease = errors.New("its Locker returned a lock without a Lease")
)

// partOf makes a part of what call returned for req.
func (n *node) partOf(
	ctx context.Context, req locker.Request, patience time.Duration, lock *locker.Lock, err error,
) (*part, error) {
	switch {
	case err != nil:
		return nil, err
	case lock == nil:
		return nil, errNoLock
	}
	p := &part{
		node: n, patience: patience, lock: lock, fence: lock.Fence(),
		resumed: !req.Resume.IsZero(), exclusive: req.Mode == locker.Exclusive,
	}
	locker.WrapLease(lock, func(inner locker.Lease) locker.Lease {
		p.Lease = inner
		return p
	})
	switch {
	case p.Lease == nil:
		err = errNoLease
	case lock.Err() != nil:
		err = fmt.Errorf("its lock had ended: %v", lock.Err()) //nolint:errorlint // that is no answer of the node
	case lock.Mode() != req.Mode:
		err = fmt.Errorf("its lock is %v, %v was asked for", lock.Mode(), req.Mode)
	}
	if err != nil {
		go p.giveBack(context.WithoutCancel(ctx))
		return nil, err
	}
	if n.source.Load() == nil {
		n.learn(p.Source())
	}
	return p, nil
}

// call asks the node for a lock. begin has been called. The stack below it is deep: the fewer
// frames above it, the fewer stacks must grow.
func (n *node) call(ctx context.Context, req locker.Request, patience time.Duration) (lock *locker.Lock, err error) {
	defer n.end(ctx, &err, patience)
	return n.inner.Acquire(n.learning(ctx), req)
}

// recovered makes an error of a panic in a node's own code: it is called in goroutines of ours,
// where nobody else could.
func recovered(err *error) { //nolint:gocritic // it sets it
	if v := recover(); v != nil {
		*err = panicked(v)
	}
}

func panicked(v any) error { return fmt.Errorf("it panicked: %v", v) }

// begin counts an acquire, and reports whether it may be made. needed says that there is no quorum
// without the node; then acquires that nobody waits for do not count against it.
func (n *node) begin(ctx context.Context, patience time.Duration, needed bool) bool {
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
	n.calls++
	n.opened(ctx, now, patience)
	return true
}

// callEnds returns a channel that is closed when an acquire returns.
func (n *node) callEnds() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended == nil {
		n.ended = make(chan struct{})
	}
	return n.ended
}

// crowded reports whether begin would refuse a call.
func (n *node) crowded(patience time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.load(time.Now()).full(patience)
}

// load returns the node's load. While nobody asks it, it is not silent. The mutex is held.
func (n *node) load(now time.Time) load {
	if n.calls == 0 || n.idle {
		n.since = now
	}
	return load{n.calls, int(n.behind.Load()), now.Sub(n.since)}
}

// end ends what begin counted. It is deferred, and makes an error of a panic.
func (n *node) end(ctx context.Context, err *error, patience time.Duration) { //nolint:gocritic // it sets it
	if v := recover(); v != nil {
		*err = panicked(v)
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls--
	if n.ended != nil {
		close(n.ended)
		n.ended = nil
	}
	if answered(*err) {
		n.since, n.idle = now, true
	}
	n.closed(ctx, now, *err, patience)
}

// learning is ctx, by which the node's source is learned from its attempt while it is not known.
func (n *node) learning(ctx context.Context) context.Context {
	if n.source.Load() != nil {
		return ctx
	}
	return locker.WithTrace(ctx, &locker.Trace{
		Attempt: func(_ context.Context, info locker.AttemptInfo) { n.learn(info.Source) },
	})
}

// learn records the node's source unless it is known. A Lease or a Trace may not know it.
func (n *node) learn(s locker.Source) {
	if s != (locker.Source{}) {
		n.source.CompareAndSwap(nil, &s)
	}
}

// error makes err the node's, without what wraps every error of an operation on a lock: that is for
// the whole.
func (n *node) error(err error) *NodeError {
	e := &NodeError{Node: n.index, Name: n.name, Err: unwrapOp(err)}
	e.Address = n.where().Address
	e.Name = cmp.Or(e.Name, e.Address)
	return e
}

// unwrapOp is err without the OpError around it.
func unwrapOp(err error) error {
	if op, ok := err.(*locker.OpError); ok { //nolint:errorlint // only the outermost
		return op.Err
	}
	return err
}

// where is the node's source, as far as it is known.
func (n *node) where() locker.Source {
	s := n.source.Load()
	if s == nil {
		return n.stated
	}
	return locker.Source{
		Strategy: cmp.Or(s.Strategy, n.stated.Strategy),
		Client:   cmp.Or(s.Client, n.stated.Client),
		Address:  cmp.Or(s.Address, n.stated.Address),
	}
}

package redlock

import (
	"context"
	"errors"
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
	source atomic.Pointer[locker.Source] // once it is known

	mu    sync.Mutex
	calls int       // acquires that have not returned
	since time.Time // when the first of them began, or the last answer came
}

// maxUnanswered is how many acquires may wait for a node that answers nothing.
const maxUnanswered = 8

var errNoLock = errors.New("its Locker returned neither a lock nor an error")

// acquire asks the node for a part of a hold.
func (n *node) acquire(ctx context.Context, req locker.Request, patience time.Duration) (*part, error) {
	if !n.begin(patience) {
		return nil, errStalled
	}
	lock, err := n.inner.Acquire(n.learning(ctx), req)
	n.returned(err)
	switch {
	case err != nil:
		return nil, err
	case lock == nil:
		return nil, errNoLock
	}
	p := &part{lock: lock, fence: lock.Fence()}
	locker.WrapLease(lock, func(inner locker.Lease) locker.Lease {
		p.Lease = inner
		return p
	})
	if n.source.Load() == nil {
		n.learn(p.Source())
	}
	return p, nil
}

// begin counts a call in, unless so many wait that one more would only add to the heap.
func (n *node) begin(patience time.Duration) bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls >= maxUnanswered && now.Sub(n.since) > patience {
		return false
	}
	if n.calls == 0 {
		n.since = now
	}
	n.calls++
	return true
}

// returned counts it out.
func (n *node) returned(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls--
	if !errors.Is(err, locker.ErrUnknownOutcome) {
		n.since = time.Now()
	}
}

// learning is ctx, by which the node's source is learned from its attempt while it is not known.
func (n *node) learning(ctx context.Context) context.Context {
	if n.source.Load() != nil {
		return ctx
	}
	return locker.WithTrace(ctx, &locker.Trace{Attempt: func(_ context.Context, info locker.AttemptInfo) { n.learn(info.Source) }})
}

func (n *node) learn(s locker.Source) { n.source.CompareAndSwap(nil, &s) }

// error makes err the node's.
func (n *node) error(err error) *NodeError {
	e := &NodeError{Node: n.index, Name: n.name, Err: err}
	if s := n.source.Load(); e.Name == "" && s != nil {
		e.Name = s.Address
	}
	return e
}

// part is what a hold has at one node. It wraps the lease of the node's lock.
type part struct {
	locker.Lease
	lock  *locker.Lock
	quiet atomic.Bool // a release is to wake nobody

	// The hold's mutex guards these.
	fence      int64 // what the node's counter is raised to at least
	converting bool
	unsure     bool // of the mode
}

// Do implements locker.Lease.
func (p *part) Do(ctx context.Context, op locker.Op) (locker.Term, error) {
	if op.Kind == locker.OpRelease && p.quiet.Load() {
		term, err := p.Lease.Do(ctx, locker.Op{Kind: locker.OpGiveBack})
		if !errors.Is(err, errors.ErrUnsupported) {
			return term, err
		}
	}
	return p.Lease.Do(ctx, op)
}

// Unwrap lets what else the node's lease can do be found.
func (p *part) Unwrap() locker.Lease { return p.Lease }

// Source implements locker.Sourced.
func (p *part) Source() locker.Source {
	if s, ok := p.Lease.(locker.Sourced); ok {
		return s.Source()
	}
	return locker.Source{}
}

// convert changes the mode of the node's lock.
func (p *part) convert(ctx context.Context, to locker.Mode) error {
	if to == locker.Shared {
		return p.lock.Downgrade(ctx)
	}
	return p.lock.Upgrade(ctx)
}

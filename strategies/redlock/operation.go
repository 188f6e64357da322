package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// operation is one operation on all node locks at once: a renewal, a conversion, a release.
type operation struct {
	mu            sync.Mutex
	errs          []error // by node; errUnanswered: in flight
	done, pending int
	needed        int
	decided       chan struct{} // closed once needed nodes have done it, or cannot any more
	isDecided     bool
	answered      chan struct{} // closed once all have answered
	left          chan struct{} // closed once nobody waits for the operation any more
	hasLeft       bool
}

// newOperation returns an operation that needed of n nodes are to do. Nodes that no reply is
// expected of do not hold the lock.
func newOperation(n, needed int) *operation {
	o := &operation{
		errs: make([]error, n), needed: needed,
		decided: make(chan struct{}), answered: make(chan struct{}), left: make(chan struct{}),
	}
	for i := range o.errs {
		o.errs[i] = locker.ErrNotHeld
	}
	return o
}

// pendingReply is the reply of a node that an operation waits for.
type pendingReply struct {
	op   *operation
	node int
}

// expect makes the operation wait for a reply of node i. Nobody else knows the operation yet.
func (o *operation) expect(i int) pendingReply {
	o.errs[i] = errUnanswered
	o.pending++
	return pendingReply{o, i}
}

// nobodyWaits returns a reply that nobody waits for.
func nobodyWaits() pendingReply {
	o := newOperation(1, 1)
	r := o.expect(0)
	o.stopWaiting()
	return r
}

// answer passes the node's reply to the operation.
func (r pendingReply) answer(err error) { r.op.answer(r.node, err) }

// unwanted reports whether nobody waits for the reply any more.
func (r pendingReply) unwanted() bool {
	r.op.mu.Lock()
	defer r.op.mu.Unlock()
	return r.op.hasLeft
}

// start decides an operation that is decided before any reply.
func (o *operation) start() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tryDecide()
}

// tryDecide closes decided once the operation is decided. The mutex is held.
func (o *operation) tryDecide() {
	if !o.isDecided && (o.done >= o.needed || o.done+o.pending < o.needed) {
		o.isDecided = true
		close(o.decided)
	}
}

// answer records the reply of node i.
func (o *operation) answer(i int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs[i] = err
	o.pending--
	if err == nil {
		o.done++
	}
	o.tryDecide()
	if o.pending == 0 {
		close(o.answered)
	}
}

// wait waits until the operation is decided, at most for patience; once ctx has ended, for
// afterCtx in all, and the error is ctx's. If the quorum is missed, it waits as long again for the
// other replies: they say whether the lock is lost.
func (o *operation) wait(ctx context.Context, patience, afterCtx time.Duration) (err error) {
	start := time.Now()
	end := start.Add(patience)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	waitAtMost := func(d time.Duration) {
		if sooner := start.Add(d); sooner.Before(end) {
			end = sooner
			timer.Reset(time.Until(end))
		}
	}
	decided, ctxEnds := o.decided, ctx.Done()
	var answered chan struct{} // nil: it is not waited for
	for {
		select {
		case <-decided:
			if o.isSettled() {
				return nil
			}
			decided, answered = nil, o.answered
			took := time.Since(start)
			waitAtMost(took + max(took, minGrace))
		case <-answered:
			return err
		case <-timer.C:
			return err
		case <-ctxEnds:
			ctxEnds, err = nil, locker.ContextErr(ctx)
			waitAtMost(afterCtx)
		}
	}
}

// stopWaiting says that nobody waits for the operation any more.
func (o *operation) stopWaiting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hasLeft = true
	close(o.left)
}

// isSettled reports whether the quorum has done it, or there is no reply left to wait for.
func (o *operation) isSettled() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done >= o.needed || o.pending == 0
}

// errOf returns what node i replied so far.
func (o *operation) errOf(i int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errs[i]
}

// answers returns what the nodes replied so far.
func (o *operation) answers(nodes []*quorumNode) *nodeAnswers {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := &nodeAnswers{}
	for i, err := range o.errs {
		refused := errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld)
		t.add(nodes[i], err, refused)
		if cause := nodes[i].failure(); refused && cause != nil {
			t.absent = append(t.absent, nodes[i].error(fmt.Errorf("it does not hold the lock any more: %w", cause)))
		}
	}
	return t
}

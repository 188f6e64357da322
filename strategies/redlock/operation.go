package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// operation is one operation on all node locks at once: a renewal, a conversion, a release.
type operation struct {
	needed  int
	decided chan struct{} // closed once needed nodes have done it, or cannot any more
	left    chan struct{} // closed when wait returns

	mu            sync.Mutex
	errs          []error // by node; errUnanswered: in flight
	done, pending int
	answered      chan struct{} // closed once all have answered; nil: nobody waits
}

// newOperation returns an operation of n nodes, with needed for its quorum. Nodes not marked by
// expect do not hold the lock.
func newOperation(n, needed int) *operation {
	o := &operation{
		errs: make([]error, n), needed: needed,
		decided: make(chan struct{}), left: make(chan struct{}),
	}
	for i := range o.errs {
		o.errs[i] = locker.ErrNotHeld
	}
	return o
}

// expect makes the operation wait for a reply of node i. Nobody else knows the operation yet.
func (o *operation) expect(i int) {
	o.errs[i] = errUnanswered
	o.pending++
}

// start calls do for each node marked by expect, in a goroutine of its own.
func (o *operation) start(do func(i int) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, err := range o.errs {
		if err == errUnanswered { //nolint:errorlint // set by this package itself
			go func() { o.answer(i, do(i)) }()
		}
	}
	o.tryDecide()
}

// tryDecide closes decided once the operation is decided. The mutex is held.
func (o *operation) tryDecide() {
	if !isClosed(o.decided) && (o.done >= o.needed || o.done+o.pending < o.needed) {
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
	if o.pending == 0 && o.answered != nil {
		close(o.answered)
	}
}

// wait waits until the operation is decided, at most for patience; once ctx has ended, for afterCtx
// in all, and the error is ctx's. If the quorum is missed, it waits as long again for the other
// replies: they say whether the lock is lost.
func (o *operation) wait(ctx context.Context, patience, afterCtx time.Duration) (err error) {
	start := time.Now()
	end := start.Add(patience)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	defer close(o.left)
	waitAtMost := func(d time.Duration) {
		if sooner := start.Add(d); sooner.Before(end) {
			end = sooner
			timer.Reset(time.Until(end))
		}
	}
	decided, ctxEnds := o.decided, ctx.Done()
	var answered <-chan struct{} // nil: it is not waited for
	for {
		select {
		case <-decided:
			if answered = o.awaitRest(); answered == nil {
				return nil
			}
			decided = nil
			took := time.Since(start)
			waitAtMost(took + max(took, minGrace))
		case <-answered:
			return err
		case <-timer.C:
			return err
		case <-ctxEnds:
			ctxEnds, err = nil, lease.ContextErr(ctx)
			waitAtMost(afterCtx)
		}
	}
}

// awaitRest returns a channel closed once all have answered. It is nil if the quorum has done it,
// or there is no reply left to wait for.
func (o *operation) awaitRest() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done >= o.needed || o.pending == 0 {
		return nil
	}
	o.answered = make(chan struct{})
	return o.answered
}

// reached reports whether the quorum has done it.
func (o *operation) reached() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done >= o.needed
}

// isClosed reports whether c is closed. Nothing is sent on it.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// answersTo returns the nodes' replies so far.
func (s *quorumState) answersTo(o *operation) *nodeAnswers {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := s.answersFor(s.req.Name)
	for i, err := range o.errs {
		refused := errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld)
		t.add(s.nodes[i], err, refused)
		if cause := s.nodes[i].failure(); refused && cause != nil {
			t.absent = append(t.absent, s.nodes[i].error(fmt.Errorf("it does not hold the lock any more: %w", cause)))
		}
	}
	return t
}

package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// phase is the progress of an attempt or its lock.
type phase uint8

const (
	gathering phase = iota // the nodes are being asked
	holding                // the quorum was reached
	lost                   // the quorum has certainly ended; Release releases the rest
	undone                 // the attempt failed: node locks are released without waking anybody
	released               // the lock was released
)

// quorumState is the state of an attempt or its lock: the slots, and the values that decide whether
// a node lock counts toward the quorum.
type quorumState struct {
	*Locker
	// ctx has the values of the acquire's ctx, for work that outlasts its caller. It never ends.
	ctx        context.Context //nolint:containedctx // as above
	req        locker.Request  // the request to the nodes
	began      time.Time
	fenceKnown chan struct{} // closed once the fencing token is known, or the attempt failed; nil: not fenced

	// Lock mu with mu.Lock, and unlock it with unlock alone: unlock also ends the Lock if a step under
	// the mutex has set unreportedLoss.
	mu             sync.Mutex
	phase          phase
	slots          []slot        // by node
	ended          chan struct{} // closed when phase becomes undone or released; nil: nobody waits
	mode           locker.Mode
	upgrading      bool // the mode is being changed to exclusive
	fence          int64
	deadline       time.Time   // of the quorum, as last promised
	lock           lease.Hold  // nil until there is one
	alarm          *time.Timer // runs if the quorum ends before deadline
	viewed         quorumView  // the result of view; reused: an acquire with its release makes twenty
	unreportedLoss error       // unlock ends the Lock with it
}

// attemptTimeout returns the AttemptTimeout.
func (s *quorumState) attemptTimeout() time.Duration { return s.cfg.attemptTimeout(s.req.TTL) }

// owner returns the owner of the node locks.
func (s *quorumState) owner() string { return cmp.Or(s.req.Owner, s.req.Resume.Owner()) }

// unlock unlocks the mutex, and then ends the Lock after an unreported loss: ending it runs
// callbacks.
func (s *quorumState) unlock() {
	lock, loss := s.lock, s.unreportedLoss
	if lock != nil {
		s.unreportedLoss = nil
	}
	s.mu.Unlock()
	if lock != nil && loss != nil {
		lock.MarkLost(loss)
	}
}

// view returns the current quorumView, valid until the next view. The mutex is held.
func (s *quorumState) view() *quorumView {
	v := &s.viewed
	if v.nodes == nil {
		v.nodes = make([]nodeView, len(s.slots))
		v.needed, v.fenced, v.timeout = s.quorum, s.fenceKnown != nil, s.attemptTimeout()
	}
	v.mode, v.fence, v.now = s.mode, s.fence, time.Now()
	for i := range s.slots {
		s.slots[i].view(&v.nodes[i])
	}
	return v
}

// accepts reports whether a node lock just granted joins the lock. Its mode may still have to be
// changed. The mutex is held.
func (s *quorumState) accepts() bool {
	switch s.phase {
	case gathering:
		return true
	case holding:
		return s.beforeDeadline()
	default:
		return false
	}
}

// beforeDeadline reports whether the Deadline has not passed. The mutex is held.
func (s *quorumState) beforeDeadline() bool {
	return s.deadline.IsZero() || time.Now().Before(s.deadline)
}

// wants reports whether node locks are to have mode. When a slow node begins a conversion, the
// quorum may have succeeded without it, and the mode may have changed again. The mutex is held.
func (s *quorumState) wants(mode locker.Mode) bool {
	return (mode == locker.Exclusive) == (s.upgrading || s.mode == locker.Exclusive)
}

// fixFence sets the fencing token once there is a quorum: the highest of the live node locks. The
// mutex is held.
func (s *quorumState) fixFence() {
	if s.fenceKnown == nil || s.fence > 0 || s.phase != gathering {
		return
	}
	if highest, live := s.view().highestLive(); live >= s.quorum {
		s.fence = highest
		close(s.fenceKnown)
	}
}

// leaseToAsk returns the TTL to ask a node for, to hold for ttl and until the Deadline. The mutex
// is held.
func (s *quorumState) leaseToAsk(ttl time.Duration) time.Duration {
	return leaseToAsk(ttl, s.deadline, time.Now())
}

// untilDeadline returns a ctx for a call to a node: after the Deadline its answer is useless.
func (s *quorumState) untilDeadline() (ctx context.Context, stop func()) {
	s.mu.Lock()
	defer s.unlock()
	ctx, deadline := lease.WithWaiting(s.ctx, lease.Waiting{}), s.deadline // a held lock does not wait
	if s.phase == gathering {
		deadline = s.began.Add(s.req.TTL)
	}
	if deadline.IsZero() {
		return ctx, func() {}
	}
	bound := bounded.New(ctx, time.Until(deadline))
	return bound, bound.Stop
}

// uncancelled returns ctx without its end. A ctx without end stays as it is: each Value of
// context.WithoutCancel allocates.
func uncancelled(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// watchLoss sets the alarm if the quorum ends before the Deadline, because nodes lost their node
// locks. The mutex is held.
func (s *quorumState) watchLoss() {
	if s.alarm != nil {
		s.alarm.Stop()
	}
	if s.phase != holding {
		return
	}
	v := s.view()
	end, ok := v.lossTime()
	if ok && reaches(end, s.deadline) {
		return
	}
	var wait time.Duration
	if ok {
		wait = max(remaining(end, v.now), 0)
	}
	s.alarm = time.AfterFunc(wait, s.endIfLost)
}

// endIfLost ends the Lock, unless a renewal restored the quorum before.
func (s *quorumState) endIfLost() {
	s.mu.Lock()
	defer s.unlock()
	if s.isLost() {
		s.unreportedLoss = s.lossError()
	}
	s.watchLoss()
}

// isLost reports whether the lock is lost: its quorum has ended. The mutex is held.
func (s *quorumState) isLost() bool {
	if s.phase == holding && s.view().isLost() {
		s.phase = lost
	}
	return s.phase == lost
}

// lossError returns ErrLost with the number of nodes still holding, and the failing ones. The mutex
// is held.
func (s *quorumState) lossError() error {
	n := 0
	var failing []*NodeError
	v := s.view()
	for i, node := range s.nodes {
		if v.counts(&v.nodes[i]) {
			n++
		} else if cause := node.failure(); cause != nil {
			failing = append(failing, node.error(cause))
		}
	}
	return fmt.Errorf("%w: %d of %d nodes are known to hold it, %d needed%s", locker.ErrLost, n, len(s.nodes), s.quorum,
		listed(failing))
}

// each calls do for each node lock, and returns when a quorum has done it or cannot any more, when
// ctx ends, or after patience. Calls in flight then go on. Node locks being acquired take part once
// granted. The error is ctx's.
func (s *quorumState) each(
	ctx context.Context, patience time.Duration, do func(p *nodeLock, op *operation) error,
) (*nodeAnswers, error) {
	op, held := newOperation(len(s.slots), s.quorum), make([]*nodeLock, len(s.slots))
	s.mu.Lock()
	for i := range s.slots {
		if slot := &s.slots[i]; slot.held != nil || slot.asking {
			op.expect(i)
			held[i] = slot.held
		}
	}
	s.unlock()
	op.start(func(i int) error {
		p, err := s.awaitCall(i, op)
		switch {
		case p != held[i] && isClosed(op.left):
			return errUnanswered // it came after the caller left
		case p != nil:
			return do(p, op)
		case err == nil:
			return locker.ErrNotHeld
		}
		return err
	})
	err := op.wait(ctx, patience, 0)
	answers := s.answersTo(op)
	for _, e := range answers.failed {
		if e.Err == errUnanswered { //nolint:errorlint // set by this package itself
			s.nodes[e.Node].checkSilence(s.ctx, s.attemptTimeout())
		}
	}
	return answers, err
}

// awaitCall waits until there is a node lock at node i, or no call is in flight there any more. It
// returns the node lock or, if there is none, the error of the acquire, or of the release of a late
// node lock.
func (s *quorumState) awaitCall(i int, op *operation) (*nodeLock, error) {
	s.mu.Lock()
	defer s.unlock()
	at := &s.slots[i]
	for at.held == nil && at.hasCall() {
		if isClosed(op.left) {
			return nil, errUnanswered
		}
		ends := at.callEnds()
		s.unlock()
		select {
		case <-ends:
		case <-op.left:
		}
		s.mu.Lock()
	}
	if at.held == nil && errors.Is(at.err, locker.ErrNotAcquired) {
		return nil, locker.ErrNotHeld
	}
	return at.held, at.err
}

// missed returns the error of an operation without a quorum; ctxErr is ctx's. The lock is lost if
// its quorum has certainly ended.
func (s *quorumState) missed(answers *nodeAnswers, ctxErr error) error {
	s.mu.Lock()
	defer s.unlock()
	err := error(answers.quorumError())
	switch {
	case s.isLost():
		return s.lossError()
	case s.phase == released:
		return locker.ErrReleased
	case ctxErr != nil:
		return fmt.Errorf("%w: %w", ctxErr, err)
	}
	return err
}

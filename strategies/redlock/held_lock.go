package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// heldLock is the Lease of a lock at a quorum. Its attempt makes it, and late node locks join it.
type heldLock struct {
	quorumState
	attempt *quorumAttempt
	turn    turn

	// The mutex guards these.
	renewed   time.Time // when the last renewal began; zero: it failed or is in flight
	note      string    // as it is now; at first req's
	keepUntil time.Time // until when releases of node locks leave the name taken; zero: they do not
}

// attach gives the heldLock its Lock, and returns it.
func (h *heldLock) attach(lock *locker.Lock) *locker.Lock {
	h.mu.Lock()
	defer h.unlock()
	if h.lock = lock.Hold(); h.phase == lost {
		h.unreportedLoss = h.lossError()
	}
	return lock
}

// Do implements lease.Lease. OpRaiseFence and OpUndo are for the nodes of a quorum, and a quorum is
// no node.
func (h *heldLock) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	switch op.Kind {
	case lease.OpRenew:
		return h.renew(ctx, cmp.Or(op.TTL.Truncate(time.Millisecond), h.req.TTL))
	case lease.OpRelease:
		return lease.Result{}, h.release(ctx, op.KeepUntil)
	case lease.OpConvert:
		return h.convert(ctx, op.Mode)
	case lease.OpNote:
		return h.setNote(ctx, op.Note)
	default:
		return lease.Result{}, fmt.Errorf("%v on a lock of redlock: %w", op.Kind, errors.ErrUnsupported)
	}
}

// Token implements lease.Lease: the tokens of the node locks held now. Whoever has it can take
// them over.
func (h *heldLock) Token() string {
	tokens, locks := make([]string, len(h.slots)), make([]*locker.Lock, len(h.slots))
	h.mu.Lock()
	for i := range h.slots {
		if p := h.slots[i].held; p != nil {
			locks[i] = p.lock
			p.named = true
		}
	}
	note := h.note
	h.unlock()
	for i, lock := range locks {
		if lock != nil {
			tokens[i] = lock.Handle().Info().Token // without the mutex: it calls the node's Lease
		}
	}
	return encodeToken(tokens, note)
}

// turn admits one renewal, conversion or change of the note at a time.
type turn chan struct{}

// take waits for the turn. Errors: those of ctx.
func (t turn) take(ctx context.Context) error {
	if err := lease.ContextErr(ctx); err != nil {
		return err // select would choose at random
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return lease.ContextErr(ctx)
	}
}

// pass lets the next operation have the turn.
func (t turn) pass() { <-t }

// release ends the lock at all nodes, late node locks included. It returns once a quorum has
// released or cannot, after ReleaseTimeout (default: two AttemptTimeouts), or after one
// AttemptTimeout if ctx has ended. The releases continue. The names stay taken until keep.
func (h *heldLock) release(ctx context.Context, keep time.Time) error {
	op, held := h.beginRelease(keep)
	op.start(func(i int) error {
		if held[i] == nil {
			_, err := h.awaitCall(i, op)
			return err
		}
		err := held[i].Release(h.ctx)
		h.releaseEnded(&h.slots[i], err)
		return err
	})
	patience := cmp.Or(h.cfg.ReleaseTimeout, 2*h.attemptTimeout())
	_ = op.wait(ctx, patience, min(patience, h.attemptTimeout())) // a release goes on without its ctx
	if op.reached() {
		return nil
	}
	return h.answersTo(op).releaseVerdict()
}

// beginRelease ends the lock, and returns the locks to release, by node.
func (h *heldLock) beginRelease(keep time.Time) (op *operation, held []*locker.Lock) {
	h.mu.Lock()
	defer h.unlock()
	h.phase, h.keepUntil = released, keep
	h.watchLoss()
	op, held = newOperation(len(h.slots), h.quorum), make([]*locker.Lock, len(h.slots))
	for i := range h.slots {
		s := &h.slots[i]
		if s.held != nil || s.asking { // an acquire in flight may succeed
			op.expect(i)
		}
		if s.held != nil {
			held[i] = s.held.lock
			s.held, s.ending = nil, true
		}
	}
	h.becomeLeftover()
	return op, held
}

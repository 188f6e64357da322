package redlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/acquisition"
	"github.com/holdfast-go/holdfast/locker"
)

// ask acquires at one node. The node lock joins the lock or, if the lock is not held by then, is
// released. mayAsk reports whether the node may be asked now. If it may, mayAsk counts the call.
func (h *heldLock) ask(ctx context.Context, s *slot, req *locker.Request, mayAsk func() bool) {
	grantedUntil := time.Now().Add(req.TTL)
	p, err := h.acquireAt(ctx, s, req, mayAsk)
	h.attempt.dropEnded()
	switch joined := h.record(s, p, err); {
	case joined:
		p.raiseOnceKnown()
		h.mu.Lock()
		defer h.unlock()
		p.ensureMode()
		p.catchUp(grantedUntil)
		if h.phase != gathering {
			p.acquisition.Pass()
		}
	case err == nil:
		h.releaseEnded(s, p.lock.Release(h.ctx))
		p.acquisition.End()
	}
}

// acquireAt acquires at one node. An exclusive acquire first waits up to minGrace for calls of
// released holds: the node would refuse it until then. If a leftover may have caused a refusal,
// acquireAt asks once more when the leftovers have ended.
func (h *heldLock) acquireAt(ctx context.Context, s *slot, req *locker.Request, mayAsk func() bool) (*nodeLock, error) {
	left := h.leftoversAt(s.node.index)
	if len(left) > 0 && fromReleased(left) && req.Mode == locker.Exclusive && !h.awaitLeftovers(left, minGrace) {
		return nil, locker.ErrNotHeld // nothing was sent
	}
	ctx, a := acquisition.Begin(ctx)
	var lock *locker.Lock
	err := errStalled
	if mayAsk() {
		lock, err = s.node.acquire(ctx, *req, h.attemptTimeout())
	}
	if mayHaveRefused(left, err) && h.awaitLeftovers(left, req.TTL) && ctx.Err() == nil && mayAsk() {
		lock, err = s.node.acquire(ctx, *req, h.attemptTimeout()) // the leftovers have ended
	}
	return newNodeLock(h, s, req, lock, a, err)
}

// record records the lock p granted by a node, or its error. joined reports whether p belongs to
// the lock now; otherwise p is to be released.
func (h *heldLock) record(s *slot, p *nodeLock, err error) (joined bool) {
	h.mu.Lock()
	defer h.unlock()
	s.asking, s.queued, s.err = false, false, err
	s.setUnawaited(false)
	joined = err == nil && h.accepts()
	switch {
	case joined:
		s.held, h.attempt.tookOver = p, true
		h.fixFence()
	case err == nil:
		s.ending = true
		p.quiet.Store(h.phase == undone)
	}
	h.attempt.tryDecide()
	h.watchLoss()
	h.callEnded(s)
	return joined
}

// restore acquires the lock again at the nodes without it, in the background, while the quorum
// holds. It skips nodes marked expired. If no renewal has succeeded, it also skips nodes marked
// takenOver, and no node counts before its answer. The mutex is held.
func (h *heldLock) restore(ttl time.Duration, renewed bool) {
	if h.upgrading || !h.beforeDeadline() {
		return
	}
	req := h.req
	req.Note = h.note
	req.Resume, req.Owner, req.Mode, req.TTL = locker.Handle{}, h.owner(), h.mode, h.leaseToAsk(ttl)
	req.MinHold = 0 // the quorum's counts
	for i := range h.slots {
		s := &h.slots[i]
		if s.held != nil || s.asking || !s.expired.IsZero() || s.takenOver && !renewed {
			continue
		}
		s.askedAt = time.Time{}
		if renewed {
			s.askedAt = time.Now()
		}
		s.asking = true
		s.setUnawaited(true)
		go func() {
			ctx, stop := h.untilDeadline()
			defer stop()
			h.ask(ctx, s, &req, func() bool {
				_, ok := s.node.beginAcquire(ctx, h.attemptTimeout(), h.attempt.needsBusy)
				return ok
			})
		}()
	}
}

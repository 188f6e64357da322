package redlock

import "context"

// release ends the lock at all nodes. Node locks that come later are released then. It returns when
// a quorum has released, or cannot any more; at twice the AttemptTimeout, or once that if ctx has
// ended. The releases go on.
func (h *heldLock) release(ctx context.Context) error {
	op, held := h.beginRelease()
	op.start()
	for _, p := range held {
		go func() {
			op.answer(p.slot.node.index, p.lock.Release(h.ctx))
			h.releaseEnded(p.slot)
		}()
	}
	_ = op.wait(ctx, 2*h.timeout, h.timeout) // a release goes on without its ctx
	op.stopWaiting()
	return releaseVerdict(op.answers(h.nodes), h.facts())
}

// beginRelease ends the lock, and returns the node locks to release.
func (h *heldLock) beginRelease() (op *operation, held []*nodeLock) {
	h.mu.Lock()
	defer h.unlock()
	h.phase = over
	h.watchLoss()
	op = newOperation(len(h.slots), h.quorum)
	for i := range h.slots {
		switch s := &h.slots[i]; {
		case s.held != nil:
			op.expect(i)
			held = append(held, s.held)
			s.held, s.ending = nil, true
		case s.asking:
			s.awaitAcquire(op.expect(i), nil) // it may hold
		}
	}
	h.becomeLeftover()
	return op, held
}

package redlock

import (
	"context"

	"github.com/holdfast-go/holdfast/locker"
)

// release ends the lock at all nodes. Node locks that come later are released then. It returns when
// a quorum has released, or cannot any more; at twice the AttemptTimeout, or once that if ctx has
// ended. The releases go on.
func (h *heldLock) release(ctx context.Context) error {
	op, held := h.beginRelease()
	op.start(func(i int) error {
		if held[i] == nil {
			_, err := h.awaitCall(i, op)
			return err
		}
		err := held[i].Release(h.ctx)
		h.releaseEnded(&h.slots[i], err)
		return err
	})
	_ = op.wait(ctx, 2*h.timeout, h.timeout) // a release goes on without its ctx
	return h.answersTo(op).releaseVerdict()
}

// beginRelease ends the lock, and returns the locks to release, by node.
func (h *heldLock) beginRelease() (op *operation, held []*locker.Lock) {
	h.mu.Lock()
	defer h.unlock()
	h.phase = over
	h.watchLoss()
	op, held = newOperation(len(h.slots), h.quorum), make([]*locker.Lock, len(h.slots))
	for i := range h.slots {
		s := &h.slots[i]
		if s.held != nil || s.asking { // what is being acquired may be held
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

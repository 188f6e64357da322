package redlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// setNote changes the note at a quorum. Other node locks get it with their next renewal.
func (h *heldLock) setNote(ctx context.Context, note string) (lease.Result, error) {
	if err := h.turn.take(ctx); err != nil {
		return lease.Result{}, err
	}
	defer h.turn.pass()
	answers, err := h.each(ctx, h.attemptTimeout(), func(p *nodeLock, _ *operation) error { return p.setNote(note) })
	if answers.unsupported() {
		return lease.Result{}, h.missed(answers, err)
	}
	h.mu.Lock()
	h.note = note
	h.unlock()
	if answers.done >= h.quorum {
		return h.result(), nil
	}
	if err = h.missed(answers, err); !errors.Is(err, locker.ErrNotHeld) {
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	return lease.Result{}, err
}

// setNote changes the note at the node.
func (p *nodeLock) setNote(note string) error {
	h := p.of
	ctx, cancel := context.WithTimeout(h.ctx, h.attemptTimeout())
	defer cancel()
	err := p.lock.SetNote(ctx, note)
	h.mu.Lock()
	defer h.unlock()
	if err == nil {
		p.note = note
	}
	p.dropIfLost(err)
	h.watchLoss()
	return err
}

// adoptNote changes the note at the node to the lock's, if they differ. A failure is ignored.
func (p *nodeLock) adoptNote() {
	h := p.of
	h.mu.Lock()
	note, has := h.note, p.note
	h.unlock()
	if note != has {
		_ = p.setNote(note)
	}
}

package keylock

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Changing the note gives the hold a new value with a fresh token, as a resume does. So a command
// with the old value that is executed late changes nothing, and a resend shows the outcome. A
// command in flight meanwhile may find no hold of its value: run then sends it again with the new
// one.

// changedValue is the value of a hold whose note was changed. keyHold.mu guards value and change.
type changedValue struct {
	value  string // the present one
	change *change
}

// change is a change of the note whose outcome is not known yet.
type change struct {
	value, note string
	turn        chan struct{} // holds an item while a call of the change is in flight
	open        bool          // a call of the change has an unknown outcome. turn guards it
}

// values returns the present value of the hold, and that of a change whose outcome is not known, or
// "". acquired is the value with which the hold was acquired. The mutex is held.
func (n *changedValue) values(acquired string) (value, pending string) {
	switch {
	case n == nil:
		return acquired, ""
	case n.change == nil:
		return n.value, ""
	}
	return n.value, n.change.value
}

// current returns the value of the hold.
func (h *keyHold) current() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	value, _ := h.changed.values(h.value)
	return value
}

// Token implements lease.Tokened.
func (h *keyHold) Token() string { return h.current() }

func (h *keyHold) pendingChange() *change {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		return nil
	}
	return h.changed.change
}

// changedFrom reports whether the hold has, or may have, another value than value.
func (h *keyHold) changedFrom(value string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, pending := h.changed.values(h.value)
	return now != value || pending != ""
}

// valueAfter returns the value of the hold after a call with value has not found it: a change of
// the note may be the reason. Errors: the outcome of that change could not be found out; ErrLost.
func (h *keyHold) valueAfter(ctx context.Context, value string) (string, error) {
	if !h.changedFrom(value) {
		return value, nil
	}
	if err := h.finishChange(ctx); err != nil {
		return "", err
	}
	return h.current(), nil
}

// setNote replaces the note.
func (h *keyHold) setNote(ctx context.Context, note string) error {
	var c *change
	for c == nil {
		if err := h.finishChange(ctx); err != nil {
			return err
		}
		c = h.beginChange(note)
	}
	defer func() { <-c.turn }()
	return h.sendChange(ctx, c)
}

// beginChange returns a new change, in flight. It is nil if there is another one.
func (h *keyHold) beginChange(note string) *change {
	spec, old := h.l.spec, h.current()
	owner, permits := h.owner, 1
	if spec.ParseValue != nil {
		owner, _ = spec.ParseValue(old)
	}
	if spec.Permits > 0 {
		permits = spec.ParsePermits(old)
	}
	c := &change{value: spec.newValue(owner, note, permits), note: note, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = &changedValue{value: h.value}
	}
	if h.changed.change != nil || h.changed.value != old {
		return nil
	}
	h.changed.change = c
	return c
}

// finishChange finds out the outcome of a change, if it is not known, by sending it again.
func (h *keyHold) finishChange(ctx context.Context) error {
	c := h.pendingChange()
	if c == nil {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return errors.Join(locker.ErrUnknownOutcome, locker.ContextErr(ctx))
	}
	defer func() { <-c.turn }()
	if h.pendingChange() != c {
		return nil
	}
	return h.sendChange(ctx, c)
}

// tryFinishChange is finishChange, except that it does not wait for another call that finds out the
// outcome.
func (h *keyHold) tryFinishChange(ctx context.Context) error {
	c := h.pendingChange()
	if c == nil {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-c.turn }()
	if h.pendingChange() != c {
		return nil
	}
	return h.sendChange(ctx, c)
}

// sendChange sends a change, in its turn, until its outcome is known.
func (h *keyHold) sendChange(ctx context.Context, c *change) error {
	call := h.noteCall(c.value, c.note)
	_, err := h.runOnce(ctx, &call, replyYes, replyAlready, replyNo, replyForeign)
	h.mu.Lock()
	if err == nil {
		h.changed.value = c.value
	}
	if err == nil || errors.Is(err, locker.ErrLost) || !errors.Is(err, locker.ErrUnknownOutcome) && !c.open {
		h.changed.change = nil
	} else {
		c.open = true
	}
	h.mu.Unlock()
	if err == nil && call.acked < call.replicas {
		return call.shortfall()
	}
	return err
}

// releaseValues runs e, which releases the hold. While a change of its note or a send of its
// acquire is in flight, the hold may have one of several values: releaseValues releases each.
func (h *keyHold) releaseValues(ctx context.Context, e endScript) (lease.Others, error) {
	others, err := h.end(ctx, e)
	for _, value := range h.otherValues(e.args[0]) {
		e.args[0] = value
		more, errMore := h.end(ctx, e)
		switch {
		case errMore == nil && (err == nil || errors.Is(err, locker.ErrLost)):
			others, err = more, nil
		case errMore != nil && !errors.Is(errMore, locker.ErrLost):
			others, err = more, errMore
		}
	}
	return others, err
}

// otherValues returns the values, other than value, that the hold may have at the server.
func (h *keyHold) otherValues(value string) (others []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		return nil
	}
	now, pending := h.changed.values(h.value)
	if now != value {
		others = append(others, now)
	}
	if pending != "" {
		others = append(others, pending)
	}
	if now != h.value && !h.unanswered.Settled() {
		others = append(others, h.value)
	}
	return others
}

var _ lease.Tokened = (*keyHold)(nil)

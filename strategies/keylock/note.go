package keylock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Changing the note gives the hold a new value with a fresh token, as a resume does. So a late
// command with the old value changes nothing, and a resend shows the outcome. A command in flight
// meanwhile may find no hold of its value: run then sends it again with the new one.

// change is a change of the note with a yet unknown outcome.
type change struct {
	value, note string
	unknown     bool // a call of it has an unknown outcome; the turn guards it
}

// values returns the value of the hold, and the pending change; nil: none.
func (h *keyHold) values() (value string, pending *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.value, h.change
}

// Token returns the value of the hold: see lease.Lease.
func (h *keyHold) Token() string {
	value, _ := h.values()
	return value
}

// takeTurn waits until no call of a change is in flight, and returns the end of its own turn. done
// is nil if ctx ends, or if a call is in flight and wait is false.
func (h *keyHold) takeTurn(ctx context.Context, wait bool) (done func(), err error) {
	h.mu.Lock()
	if h.noteTurn == nil {
		h.noteTurn = make(chan struct{}, 1)
	}
	turn := h.noteTurn
	h.mu.Unlock()
	done = func() { <-turn }
	select {
	case turn <- struct{}{}:
		return done, nil
	default:
	}
	if !wait {
		return nil, nil
	}
	select {
	case turn <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, errors.Join(locker.ErrUnknownOutcome, lease.ContextErr(ctx))
	}
}

// setNote replaces the note once the outcome of an earlier change is known. If that stays unknown,
// finishChanges replaces it.
func (h *keyHold) setNote(ctx context.Context, note string) error {
	done, err := h.takeTurn(ctx, true)
	h.mu.Lock()
	h.nextNote = &note
	h.mu.Unlock()
	if err != nil {
		return err
	}
	defer done()
	if err = h.sendChanges(ctx); err == nil && h.endsNotes(false) {
		return locker.ErrReleased // maybe nothing was sent
	}
	return err
}

// endsNotes reports whether the release has begun, also by this call if it begins. No change begins
// then: releaseValues could not know its value.
func (h *keyHold) endsNotes(begins bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releasing = h.releasing || begins
	return h.releasing
}

// finishChanges finds out the outcome of the pending change, if there is one, by sending it again,
// and then makes the next change. Without wait it returns at once if a call of a change is in
// flight.
func (h *keyHold) finishChanges(ctx context.Context, wait bool) error {
	h.mu.Lock()
	idle := h.change == nil && h.nextNote == nil
	h.mu.Unlock()
	if idle {
		return nil
	}
	done, err := h.takeTurn(ctx, wait)
	if done == nil {
		return err
	}
	defer done()
	return h.sendChanges(ctx)
}

// sendChanges sends the pending change and then the next one, if there are any, in their turn,
// until their outcome is known. It returns the error of the last one sent.
func (h *keyHold) sendChanges(ctx context.Context) (err error) {
	for err == nil || errors.Is(err, locker.ErrNotReplicated) {
		value, c := h.beginChange()
		if c == nil {
			break
		}
		err = h.sendChange(ctx, value, c)
	}
	return err
}

// beginChange returns the value of the hold and the pending change; nil: none. If none was pending,
// it begins the change to nextNote.
func (h *keyHold) beginChange() (value string, c *change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.change == nil && h.nextNote != nil && !h.releasing {
		spec, owner, permits := h.l.spec, h.owner, 1
		if spec.ParseValue != nil {
			owner, _ = spec.ParseValue(h.value)
		}
		if spec.Permits > 0 {
			permits = spec.ParsePermits(h.value)
		}
		h.change = &change{value: spec.newValue(owner, *h.nextNote, permits), note: *h.nextNote}
		h.nextNote = nil
	}
	return h.value, h.change
}

// sendChange sends a change of the hold with that value until its outcome is known. Its error
// matches ErrUnknownOutcome while an earlier call of the change may yet be executed.
func (h *keyHold) sendChange(ctx context.Context, value string, c *change) error {
	call := h.noteCall(value, c)
	_, err := h.runOnce(ctx, &call, replyYes, replyAlready, replyNo, replyForeign)
	if c.unknown && err != nil && !errors.Is(err, locker.ErrLost) && !errors.Is(err, locker.ErrUnknownOutcome) {
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	h.mu.Lock()
	if err == nil {
		h.value = c.value
	}
	if c.unknown = errors.Is(err, locker.ErrUnknownOutcome); !c.unknown {
		h.change = nil
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return call.shortfall()
}

// releaseValues releases the hold. While a change of its note or a send of its acquire is unanswered,
// the hold may have one of several values: releaseValues releases each, in one releaseTimeout. If a
// release is not answered, the others go on in the background.
func (h *keyHold) releaseValues(ctx context.Context, op lease.Op) (lease.Result, error) {
	limit, began := h.releaseTimeout(), time.Now()
	if ctx.Err() != nil {
		limit = min(limit, h.timeout)
	}
	h.endsNotes(true)
	first := h.Token()
	result, err := h.end(ctx, first, op, limit)
	for _, value := range h.otherValues(first) {
		if err != nil && !errors.Is(err, locker.ErrLost) {
			h.cleanUpKnown(value, op)
			continue
		}
		more, errMore := h.end(ctx, value, op, max(limit-time.Since(began), time.Millisecond))
		if !errors.Is(errMore, locker.ErrLost) {
			result, err = more, errMore
		}
	}
	return result, err
}

// otherValues returns the possible values of the hold at the server, except first.
func (h *keyHold) otherValues(first string) (others []string) {
	value, pending := h.values()
	if value != first {
		others = append(others, value)
	}
	if pending != nil {
		others = append(others, pending.value)
	}
	if value != h.acquired && !h.unanswered.Settled() {
		others = append(others, h.acquired)
	}
	return others
}

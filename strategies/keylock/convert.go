package keylock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

var errOvertaken = errors.New("a later conversion of the same lock overtook it")

// convert changes the mode of the hold. Each conversion has a number, by which the script refuses
// what arrives behind a later one.
func (h *keyHold) convert(ctx context.Context, mode locker.Mode) (lease.Term, error) {
	call := h.convertCall(mode)
	status, err := h.run(ctx, &call, replyYes, replyAlready, replyNo, replyRefused, replyLate, replyCounter,
		replyForeign)
	switch {
	case err != nil:
		return lease.Term{}, err
	case status == replyRefused:
		return lease.Term{}, h.refusal(call.reply)
	case status == replyLate:
		return lease.Term{}, driver.Permanent(errOvertaken)
	case mode == locker.Exclusive:
		return h.upgraded(ctx, &call, status == replyAlready)
	}
	fence, err := readFence(call.reply, 1)
	if err != nil {
		return lease.Term{}, err
	}
	return lease.Term{Deadline: h.until(), Fence: fence}, nil
}

// upgraded returns the term of an upgrade that the script made, in an earlier send if earlier.
func (h *keyHold) upgraded(ctx context.Context, call *scriptCall, earlier bool) (lease.Term, error) {
	fence, err := h.readOwnFence(call.reply)
	if err != nil {
		return lease.Term{}, err
	}
	err = h.acknowledged(ctx, call, earlier)
	switch {
	case err == nil:
		return lease.Term{Deadline: h.until(), Fence: fence}, nil
	case errors.Is(err, locker.ErrUnknownOutcome), errors.Is(err, locker.ErrNotHeld):
		return lease.Term{}, err
	default: // a failover may undo it
		return lease.Term{}, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
}

func (h *keyHold) nextConversion() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conversions++
	return h.conversions
}

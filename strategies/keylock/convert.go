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

// convert changes the mode of the hold. Each conversion has a number: the script refuses a lower
// one after a higher one.
func (h *keyHold) convert(ctx context.Context, mode locker.Mode) (lease.Result, error) {
	call := h.convertCall(mode)
	status, err := h.run(ctx, &call, replyYes, replyAlready, replyNo, replyRefused, replyLate, replyCounter,
		replyForeign)
	switch {
	case err != nil:
		return lease.Result{}, err
	case status == replyRefused:
		return lease.Result{}, h.refusal(call.reply)
	case status == replyLate:
		return lease.Result{}, driver.Permanent(errOvertaken)
	}
	var fence int64
	if mode == locker.Shared {
		fence, err = readFence(call.reply, 1)
	} else if fence, err = h.readOwnFence(call.reply); err == nil {
		err = h.acknowledged(ctx, &call, status == replyAlready)
		if err != nil && !errors.Is(err, locker.ErrUnknownOutcome) && !errors.Is(err, locker.ErrNotHeld) {
			err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err) // a failover may undo it
		}
	}
	if err != nil {
		return lease.Result{}, err
	}
	return lease.Result{Deadline: h.until(), Fence: fence}, nil
}

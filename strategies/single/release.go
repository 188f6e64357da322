package single

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/outcome"
)

// release deletes the key if it is still ours. ctx ends the repeating, not the first send, nor the waiting for its answer.
func (h *hold) release(ctx context.Context) error {
	cmd := h.command(releaseScript, false, h.value, h.channel())
	cmd.Patience = ctx
	cmd.Limit = 2 * h.timeout
	detached := ctx
	if ctx.Done() != nil {
		detached = context.WithoutCancel(ctx)
	}
	before := h.until()
	err := gone(cmd.Resolve(detached, cmd))
	switch {
	case err != nil && !errors.Is(err, locker.ErrLost):
		h.giveBack()
		return err
	case h.open > 0:
		h.cleanUp(h.open) // an earlier send of the acquire may yet be executed, now that the key is free
	}
	if err != nil {
		return err
	}
	deleted, err := cmd.reply.Int(0)
	switch {
	case err != nil:
		return malformed(err)
	case deleted == replyNo && cmd.Open == 0, deleted == replyNo && !cmd.First.Before(before):
		return locker.ErrLost
	}
	return nil
}

// giveBack releases, in the background, what is or was held.
func (h *hold) giveBack() {
	if h.open > 0 {
		h.cleanUp(h.open + 1)
		return
	}
	h.openUntil = time.Now().Add(outcome.OpenFor(h.ttl))
	h.cleanUp(0)
}

// cleanUp deletes, in the background, what may be left of the hold, while open sends may still bring it back.
func (h *hold) cleanUp(open int) {
	channel := h.channel()
	outcome.CleanUp(h.drv, outcome.Residue{
		Open: open, Until: h.openUntil, Timeout: h.timeout,
		Delete: func(ctx context.Context) (bool, error) {
			reply, err := h.drv.Eval(ctx, releaseScript, []string{h.key}, []string{h.value, channel})
			if driver.CodeOf(err) == "WRONGTYPE" {
				return false, nil // somebody else's by now
			}
			if err != nil {
				return false, err
			}
			deleted, err := reply.Int(0)
			return deleted == replyYes, err
		},
	})
}

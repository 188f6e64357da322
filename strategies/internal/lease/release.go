package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/outcome"
)

// release deletes the key if it is still ours, and publishes that on channel. ctx ends the repeating, not the first send, nor
// the waiting for its answer.
func (h *hold) release(ctx context.Context, channel string) error {
	cmd := h.command(h.layout.Release, false, h.value, channel)
	cmd.args = append(cmd.args, h.layout.Extra...)
	cmd.Patience = ctx
	cmd.Limit = 2 * h.timeout
	detached := ctx
	if ctx.Done() != nil {
		detached = context.WithoutCancel(ctx)
	}
	before := h.until()
	err := cmd.Resolve(detached, cmd)
	other := driver.CodeOf(err) == "WRONGTYPE" // somebody else's key by now: ours is not there
	if err != nil && !other {
		h.giveBack(channel)
		return err
	}
	var deleted int64
	if !other {
		if deleted, err = cmd.reply.Int(0); err != nil {
			h.giveBack(channel) // nobody knows what it did
			return Malformed(err)
		}
	}
	if h.open > 0 {
		h.cleanUp(h.open, channel) // an earlier send of the acquire may yet be executed, now that the key is free
	}
	switch {
	case deleted == replyYes, cmd.Open > 0 && cmd.First.Before(before):
		return nil
	case other:
		return gone(err)
	default:
		return locker.ErrLost
	}
}

// giveBack releases, in the background, what is or was held.
func (h *hold) giveBack(channel string) {
	open := 0
	if h.open > 0 && time.Now().Before(h.openUntil) {
		open = h.open + 1
	}
	h.openUntil = time.Now().Add(outcome.OpenFor(h.ttl))
	h.cleanUp(open, channel)
}

// cleanUp deletes, in the background, what may be left of the hold, while open sends may still bring it back.
func (h *hold) cleanUp(open int, channel string) {
	h.residue(open, h.layout.Release, append([]string{h.value, channel}, h.layout.Extra...)...)
}

// residue repeats a script in the background that removes what open sends may leave. It answers 1 when it did.
func (h *hold) residue(open int, script *driver.Script, args ...string) {
	outcome.CleanUp(h.drv, outcome.Residue{
		Open: open, Until: h.openUntil, Timeout: h.timeout,
		Delete: func(ctx context.Context) (bool, error) {
			reply, err := h.drv.Eval(ctx, script, []string{h.key}, args)
			if driver.CodeOf(err) == "WRONGTYPE" {
				return false, nil // somebody else's by now
			}
			if err != nil {
				return false, err
			}
			done, err := reply.Int(0)
			return done == replyYes, err
		},
	})
}

package keylock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// ending is a script that ends the hold, and answers 1 when it did.
type ending struct {
	script *driver.Script
	first  [2]string // arguments: an array saves an allocation
	extra  []string  // those behind
}

// release deletes the hold if it is still ours, and publishes that on channel.
func (h *hold) release(channel string) ending {
	return ending{h.layout.Release, [2]string{h.value, channel}, h.layout.Extra}
}

// undo gives the hold back to whom a resume took it from: the Lock and the Handle of the old one are to go on working.
func (h *hold) undo() ending { return ending{h.layout.UndoResume, [2]string{h.value, h.over}, nil} }

// abort is for an attempt that came to nothing: of a hold that was taken over nobody knows the new value.
func (h *hold) abort(channel string) ending {
	if h.over != "" {
		return h.undo()
	}
	return h.release(channel)
}

// end ends the hold. ctx ends the repeating, not the first send, nor the waiting for its answer.
func (h *hold) end(ctx context.Context, e ending) error {
	cmd := h.command(e.script, false, e.first[:]...)
	cmd.args = append(cmd.args, e.extra...)
	cmd.Patience = ctx
	cmd.Limit = 2 * h.timeout
	detached := ctx
	if ctx.Done() != nil {
		detached = context.WithoutCancel(ctx)
	}
	before, mark := h.until(), h.unanswered.Mark()
	err := cmd.Resolve(detached, cmd)
	other := driver.CodeOf(err) == "WRONGTYPE" // somebody else's key by now: ours is not there
	if err != nil && !other {
		h.giveBack(e)
		return err
	}
	done := false
	if !other {
		if done, err = answer(cmd.reply); err != nil {
			h.giveBack(e) // nobody knows what it did
			return err
		}
	}
	if h.unanswered.RemovedSince(mark); !h.unanswered.Settled() {
		h.cleanUp(h.unanswered, e) // an earlier send of the acquire may yet be executed, now that the key is free
	}
	switch {
	case done, cmd.Open > 0 && cmd.First.Before(before):
		return nil
	case other:
		return gone(err)
	default:
		return locker.ErrLost
	}
}

// giveBack ends, in the background, what is or was held.
func (h *hold) giveBack(e ending) {
	sends := h.unanswered
	if sends == nil || !time.Now().Before(h.openUntil) {
		sends = new(resolve.Unanswered)
	}
	sends.Held()
	h.openUntil = time.Now().Add(resolve.OpenFor(h.ttl))
	h.cleanUp(sends, e)
}

// cleanUp ends, in the background, what may be left of the hold, or what the sends may still make of it.
func (h *hold) cleanUp(sends *resolve.Unanswered, e ending) {
	resolve.CleanUp(h.drv, resolve.Residue{
		Sends: sends, Until: h.openUntil, Timeout: h.timeout,
		Call: driver.Call{Script: e.script, Keys: []string{h.key}, Args: append(e.first[:], e.extra...)},
		Read: func(reply driver.Reply, err error) (bool, error) {
			if driver.CodeOf(err) == "WRONGTYPE" {
				return false, nil // somebody else's by now
			}
			if err != nil {
				return false, err
			}
			return answer(reply)
		},
	})
}

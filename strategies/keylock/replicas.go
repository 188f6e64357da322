package keylock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// What makes a hold, or makes it more, counts once enough replicas have it: acquire, resume, renew, upgrade. What makes it less
// need not wait: a failover that undoes a release or a downgrade keeps others out for longer than it must, until the lease
// ends, and never lets two in. Replicas get writes in the order in which the master executes them, so that one which has the
// next holder's acquire has the release before it too. Nor does a fencing token wait that a quorum raises: it stands at other
// nodes too.

// replicated is command for what replicas are to acknowledge.
func (h *hold) replicated(script *driver.Script, fenced bool, args ...string) *command {
	c := h.command(script, fenced, args...)
	c.replicas, c.within = h.replicas, h.within
	return c
}

// conversion is command for a change to mode.
func (h *hold) conversion(mode locker.Mode, fenced bool, args ...string) *command {
	if mode == locker.Exclusive {
		return h.replicated(h.layout.Convert, fenced, args...)
	}
	return h.command(h.layout.Convert, fenced, args...)
}

// sendAcked sends the script with a WAIT behind it. Where ctx would end before the replicas' time does, they get half of what
// is left: better to know that they are late than to know nothing.
func (c *command) sendAcked(ctx context.Context) (err error) {
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left <= c.within {
			c.within = max((left / 2).Truncate(time.Millisecond), time.Millisecond)
		}
	}
	c.reply, c.acked, err = c.drv.(driver.Acknowledger).EvalAcked(ctx, c.script, c.keys, c.args, c.replicas, c.within) //nolint:errcheck // New has looked
	return err
}

func (c *command) shortfall() error {
	return &locker.ReplicaError{Acked: c.acked, Wanted: c.replicas, Within: c.within}
}

// acknowledged is nil if enough replicas have what cmd was answered. WAIT speaks for the writes of its own connection: where
// an earlier send did it, the answered one wrote nothing, and all replicas that are connected may count though none has it.
// Then a renewal that changes nothing is written behind, and waited for.
func (h *hold) acknowledged(ctx context.Context, cmd *command, earlier bool) error {
	if h.replicas == 0 {
		return nil
	}
	if earlier {
		cmd = h.replicated(h.layout.Renew, h.fenced(), h.value, millis(time.Millisecond), millis(counterLife(h.ttl)))
		cmd.Limit = max(time.Until(h.until()), time.Nanosecond)
		if err := cmd.Resolve(ctx, cmd); err != nil {
			return gone(err)
		}
		held, err := answer(cmd.reply)
		if err != nil {
			return err
		}
		if !held {
			return locker.ErrLost
		}
	}
	if cmd.acked < cmd.replicas {
		return cmd.shortfall()
	}
	return nil
}

// unproven is for an upgrade that the server made and that a failover may undo: nobody may rely on it.
func unproven(err error) error {
	if errors.Is(err, locker.ErrUnknownOutcome) || errors.Is(err, locker.ErrNotHeld) {
		return err
	}
	return fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
}

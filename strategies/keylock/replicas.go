package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Acquires, resumes, renewals and upgrades count once enough replicas have acknowledged them.
// Releases and downgrades need no acknowledgement: if a failover undoes one, others stay out until
// the lease ends, and two are never let in. Replicas get writes in the order of the master: one
// with the next holder's acquire has the release before it too. A raised token of a quorum needs
// none either: the other nodes have it too.

// replicated makes a call need the acknowledgement of replicas.
func (h *keyHold) replicated(c scriptCall) scriptCall {
	if cfg := h.l.cfg; cfg.MinReplicas > 0 {
		c.replicas, c.within = cfg.MinReplicas, cfg.replicaTimeout(h.timeout)
	}
	return c
}

// sendAcked sends the script with a WAIT behind it. If ctx would end before the replicas' time
// does, they get half of the time left, so that their shortfall is known.
func (c *scriptCall) sendAcked(ctx context.Context) (err error) {
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); left <= c.within {
			c.within = max((left / 2).Truncate(time.Millisecond), time.Millisecond)
		}
	}
	c.reply, c.acked, err = c.drv.EvalAcked(ctx, c.script, c.keys, c.args, c.replicas, c.within)
	if errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("Config.MinReplicas is %d, but the driver (%s) cannot wait for replicas: %w",
			c.replicas, cmp.Or(c.drv.Info().Client, fmt.Sprintf("%T", c.drv)), err)
	}
	return err
}

// shortfall returns an error if too few replicas acknowledged the last send.
func (c *scriptCall) shortfall() error {
	if c.acked >= c.replicas {
		return nil
	}
	return &locker.ReplicaError{Acked: c.acked, Wanted: c.replicas, Within: c.within}
}

// acknowledged returns a ReplicaError if too few replicas have the write of call. WAIT covers only
// the writes of its own connection. So if an earlier send made the write, acknowledged sends a
// renewal of 1 ms, which changes nothing, and waits for that.
func (h *keyHold) acknowledged(ctx context.Context, call *scriptCall, earlier bool) error {
	if h.l.cfg.MinReplicas == 0 {
		return nil
	}
	if earlier {
		renewal := h.renewCall(time.Millisecond)
		call = &renewal
		if _, err := h.run(ctx, call, replyYes, replyNo); err != nil {
			return err
		}
	}
	return call.shortfall()
}

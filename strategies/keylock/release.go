package keylock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// undoOp returns the operation that undoes a failed attempt. An acquire is released: others may wait
// for it by now.
func (h *keyHold) undoOp() lease.Op {
	if h.resumes() {
		return lease.Op{Kind: lease.OpUndo}
	}
	return lease.Op{Kind: lease.OpRelease}
}

// releaseTimeout returns the maximum time for which a release waits.
func (h *keyHold) releaseTimeout() time.Duration { return cmp.Or(h.l.cfg.ReleaseTimeout, 2*h.timeout) }

// sendsOf returns the unanswered sends of the acquire, if they can create a hold with that value; nil
// for the value of a later change.
func (h *keyHold) sendsOf(value string) *resolve.Unanswered {
	if value != h.acquired {
		return nil
	}
	return h.unanswered
}

// end ends the hold with that value, within limit. The end of ctx stops the resending. It stops
// neither the first send nor the wait for its reply.
func (h *keyHold) end(
	ctx context.Context, value string, op lease.Op, limit time.Duration,
) (result lease.Result, err error) {
	call := h.endCall(value, op)
	call.Patience, call.Limit = ctx, limit
	deadline, sends := h.until(), h.sendsOf(value)
	mark := sends.Mark()
	err = call.Resolve(uncancelled(ctx), call.send)
	if err == nil {
		result, err = h.released(call.reply)
	}
	err = lostIfOtherType(err)
	if err != nil && !errors.Is(err, locker.ErrLost) {
		h.cleanUpKnown(value, op)
		return lease.Result{}, err
	}
	if sends.RemovedSince(mark); !sends.Settled() {
		h.cleanUp(sends, value, op) // a send of the acquire may yet be executed on the free key
	}
	if call.Open > 0 && call.FirstOpen.Before(deadline) {
		return lease.Result{}, nil // an earlier send ended it
	}
	return result, err
}

// released reads the reply of Release or UndoResume.
func (h *keyHold) released(reply driver.Reply) (lease.Result, error) {
	status, err := h.heldStatus(reply, replyYes, replyAlone, replyWoken, replyNo)
	return lease.Result{Alone: status == replyAlone, WokeOther: status == replyWoken}, err
}

// unsubscribeTime lets the server handle the UNSUBSCRIBE of readers first: a release sent earlier
// could wake them instead of a writer.
const unsubscribeTime = 10 * time.Millisecond

// Leave implements lease.Leaver. It sends a release with a fresh value: only the queue changes.
func (l *Locker) Leave(name, id string, left func()) {
	h := l.foundHold(name, l.spec.newValue("", "", 1), 0)
	call := h.endCall(h.value, lease.Op{Kind: lease.OpRelease, Waiter: id, WaiterLeft: true})
	l.drv.Background(func(ctx context.Context) {
		defer left()
		if id == "" {
			pause(ctx, unsubscribeTime)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout) // Close waits for it
		defer cancel()
		_ = call.send(ctx) // if it is lost, the place soon counts no more
	})
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// uncancelled returns ctx without its end.
func uncancelled(ctx context.Context) context.Context {
	if ctx.Done() == nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// cleanUpKnown ends, in the background, a hold that is known to exist or to have existed.
func (h *keyHold) cleanUpKnown(value string, op lease.Op) {
	sends := h.sendsOf(value)
	if sends == nil || !time.Now().Before(h.openUntil) {
		sends = new(resolve.Unanswered)
	}
	sends.Held()
	h.openUntil = time.Now().Add(resolve.OpenFor(h.ttl))
	h.cleanUp(sends, value, op)
}

// cleanUp ends, in the background, a possible hold. sends may still create it.
func (h *keyHold) cleanUp(sends *resolve.Unanswered, value string, op lease.Op) {
	op.Waiter, op.ForWaiter, op.WaiterLeft = "", false, false // its process has tried meanwhile
	call := h.endCall(value, op)
	resolve.CleanUp(h.l.drv, resolve.Residue{
		Sends: sends, Until: h.openUntil, Timeout: h.timeout,
		Remove: func(ctx context.Context) (removed bool, err error) {
			if err = call.send(ctx); err == nil {
				_, err = h.released(call.reply)
			}
			if err = lostIfOtherType(err); errors.Is(err, locker.ErrLost) {
				return false, nil
			}
			return err == nil, err
		},
	})
}

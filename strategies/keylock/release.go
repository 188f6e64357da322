package keylock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// nowhere is the channel of a release that is not published.
const nowhere = ""

// abort undoes what an attempt that failed may have done: a resume, or an acquire, whose release is
// published on channel.
func (h *keyHold) abort(channel string) endScript {
	if h.resumes() {
		return h.undo()
	}
	return h.release(channel, lease.Op{})
}

// end ends the hold. The end of ctx stops the resending. It stops neither the first send nor the
// wait for its reply. others is what it found out about waiters.
func (h *keyHold) end(ctx context.Context, e endScript) (others lease.Others, err error) {
	call := h.endCall(e)
	call.Patience, call.Limit = ctx, h.l.cfg.releaseTimeout(h.timeout)
	deadline, mark := h.until(), h.unanswered.Mark()
	err = call.resolve(uncancelled(ctx))
	e.own, e.next = "", lease.NextFirst // its process has tried by the time of what follows
	if err == nil {
		others, err = h.released(call.reply)
	}
	err = lostIfOtherType(err)
	if err != nil && !errors.Is(err, locker.ErrLost) {
		h.giveBack(e)
		return lease.OthersUnknown, err
	}
	if h.unanswered.RemovedSince(mark); !h.unanswered.Settled() {
		h.cleanUp(h.unanswered, e) // a send of the acquire may yet be executed, now that the key is free
	}
	if call.Open > 0 && call.FirstOpen.Before(deadline) {
		return lease.OthersUnknown, nil // an earlier send ended it
	}
	return others, err
}

// released reads the reply of Release or UndoResume.
func (h *keyHold) released(reply driver.Reply) (lease.Others, error) {
	status, err := h.heldStatus(reply, replyYes, replyAlone, replyWoken, replyNo)
	switch status {
	case replyAlone:
		return lease.OthersNone, err
	case replyWoken:
		return lease.OthersWoken, err
	default:
		return lease.OthersUnknown, err
	}
}

// unsubscribeTime is how long the server takes to learn that readers have left and do not listen. A
// release before that may wake them.
const unsubscribeTime = 10 * time.Millisecond

// Leave implements lease.Leaver. It sends the release of a hold that does not exist.
func (l *Locker) Leave(name, id string, left func()) {
	h := l.foundHold(name, l.cfg.Prefix+name, l.spec.newValue("", "", 1), l.cfg.ttl(0))
	call := h.endCall(h.release(h.channel(), lease.Op{Waiter: id, Next: lease.NextOther}))
	l.drv.Background(func(ctx context.Context) {
		defer left()
		if id == "" {
			pause(ctx, unsubscribeTime)
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.timeout) // Close waits for it
		defer cancel()
		_ = call.sendOnce(ctx) // if it is lost, the place soon counts no more
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

// giveBack ends, in the background, a hold that is or was there.
func (h *keyHold) giveBack(e endScript) {
	sends := h.unanswered
	if sends == nil || !time.Now().Before(h.openUntil) {
		sends = new(resolve.Unanswered)
	}
	sends.Held()
	h.openUntil = time.Now().Add(resolve.OpenFor(h.ttl))
	h.cleanUp(sends, e)
}

// cleanUp ends, in the background, what may be left of the hold, or what sends may still make of
// it.
func (h *keyHold) cleanUp(sends *resolve.Unanswered, e endScript) {
	call := h.endCall(e)
	resolve.CleanUp(h.l.drv, resolve.Residue{
		Sends: sends, Until: h.openUntil, Timeout: h.timeout,
		Remove: func(ctx context.Context) (removed bool, err error) {
			if err = call.sendOnce(ctx); err == nil {
				_, err = h.released(call.reply)
			}
			if err = lostIfOtherType(err); errors.Is(err, locker.ErrLost) {
				return false, nil
			}
			return err == nil, err
		},
	})
}

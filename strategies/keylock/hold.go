package keylock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/keylock/internal/resolve"
)

// keyHold is one hold. It implements lease.Lease.
type keyHold struct {
	l            *Locker
	key, owner   string
	acquired     string // the value of the acquire
	counter      string // the key of the fence counter; "": not fenced
	replaced     string // the value before a resume; "": the hold was acquired
	ttl, timeout time.Duration
	unanswered   *resolve.Unanswered // sends of the acquire; they may still be executed
	openUntil    time.Time           // no send of the acquire is executed later
	conversions  atomic.Int64        // the number of the last conversion

	mu        sync.Mutex
	deadline  time.Time     // the latest of all replies
	value     string        // the present one; see note.go
	change    *change       // of the note, outcome unknown yet; nil: none
	nextNote  *string       // the note to set once change is resolved; nil: none
	releasing bool          // no change begins any more
	noteTurn  chan struct{} // has an item while a call of a change is in flight; nil: none ever was
}

// Format implements fmt.Formatter for every verb. It does not show the token.
func (h *keyHold) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "lease of %.64q, strategy %s", h.name(), h.l.spec.Name)
}

func (h *keyHold) name() string { return h.key[len(h.l.cfg.Prefix):] }

// Traits returns those of the Locker.
func (h *keyHold) Traits() lease.Traits { return h.l.Traits() }

// Server returns the server of the key: see lease.Lease.
func (h *keyHold) Server() any { return h.l.drv.Server(h.key) }

// Do implements lease.Lease.
func (h *keyHold) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	spec := h.l.spec
	switch {
	case op.Kind == lease.OpRenew:
		return h.renew(ctx, cmp.Or(op.TTL.Truncate(time.Millisecond), h.ttl))
	case op.Kind == lease.OpRelease:
		if !op.KeepUntil.IsZero() && !spec.MinHold {
			return lease.Result{}, fmt.Errorf("a release that keeps the name taken, on a lock of %s: %w", spec.Name,
				errors.ErrUnsupported)
		}
		return h.releaseValues(ctx, op)
	case op.Kind == lease.OpNote && spec.Note:
		return lease.Result{Deadline: h.until()}, h.setNote(ctx, op.Note)
	case op.Kind == lease.OpUndo:
		_, err := h.end(ctx, h.Token(), op, h.releaseTimeout())
		return lease.Result{}, err
	case op.Kind == lease.OpRaiseFence && h.fenced():
		return h.raiseFence(ctx, op.Fence)
	case op.Kind == lease.OpConvert && spec.Convert != nil:
		return h.convert(ctx, op.Mode)
	}
	return lease.Result{}, fmt.Errorf("%v on a lock of %s: %w", op.Kind, spec.Name, errors.ErrUnsupported)
}

func (h *keyHold) fenced() bool { return h.counter != "" }

func (h *keyHold) resumes() bool { return h.replaced != "" }

// channel returns the channel of releases.
func (h *keyHold) channel() string { return h.l.spec.channel(h.key) }

// listening returns how waiters hear of releases.
func (h *keyHold) listening() driver.Channel {
	if listen := h.l.spec.Listen; listen != nil {
		return listen(h.l.drv, h.key, h.channel())
	}
	return driver.NewChannel(h.l.drv, h.channel())
}

// until returns the Deadline.
func (h *keyHold) until() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// extend moves the Deadline, never back.
func (h *keyHold) extend(deadline time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if deadline.After(h.deadline) {
		h.deadline = deadline
	}
	return h.deadline
}

// deadlineOf returns the Deadline of a lease from a command at sent: its end by the local clock,
// less the drift.
func deadlineOf(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - ttl/100 - 2*time.Millisecond)
}

// run sends a call until its outcome is known, as long as ctx and the lease last, and returns the
// status of the reply, one of want. If the note was changed meanwhile, it sends the call again with
// the new value of the hold. Errors: ErrLost if the status is 0 or the key is not ours any more.
func (h *keyHold) run(ctx context.Context, call *scriptCall, want ...int64) (int64, error) {
	for {
		status, err := h.runOnce(ctx, call, want...)
		if !errors.Is(err, locker.ErrLost) {
			return status, err
		}
		errNote := h.finishChanges(ctx, true)
		value := h.Token()
		if errNote != nil || value == call.args[0] {
			return 0, cmp.Or(errNote, err)
		}
		call.args[0] = value
		call.Sends = resolve.Sends{Timeout: h.timeout, Urgent: true}
	}
}

func (h *keyHold) runOnce(ctx context.Context, call *scriptCall, want ...int64) (int64, error) {
	call.Limit = max(time.Until(h.until()), time.Nanosecond)
	if err := call.Resolve(ctx, call.send); err != nil {
		return 0, lostIfOtherType(err)
	}
	status, err := h.heldStatus(call.reply, want...)
	if call.Open > 0 && wroteNothing(err) {
		// an earlier send may be executed once the keys are ours again
		err = fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, err)
	}
	return status, err
}

// heldStatus returns the status of a reply. Errors: ErrLost if it is 0, the hold is gone.
func (h *keyHold) heldStatus(reply driver.Reply, want ...int64) (int64, error) {
	status, err := readStatus(reply, h.key, h.counter, want...)
	if err == nil && status == replyNo {
		err = locker.ErrLost
	}
	return status, err
}

// lostIfOtherType maps WRONGTYPE to ErrLost: the key is not ours any more, whatever became of
// earlier sends.
func lostIfOtherType(err error) error {
	if found, ok := errors.AsType[*driver.ServerError](err); ok && found.Code() == "WRONGTYPE" {
		return fmt.Errorf("%w: %w", locker.ErrLost, found)
	}
	return err
}

func (h *keyHold) renew(ctx context.Context, ttl time.Duration) (lease.Result, error) {
	if err := h.finishChanges(ctx, false); errors.Is(err, locker.ErrLost) {
		return lease.Result{}, err
	}
	call := h.renewCall(ttl)
	if _, err := h.run(ctx, &call, replyYes, replyNo); err != nil {
		return lease.Result{}, err
	}
	if err := call.shortfall(); err != nil { // a failover may bring the old lease back, so the old Deadline stays
		return lease.Result{}, err
	}
	return lease.Result{Deadline: h.extend(deadlineOf(call.Last, ttl))}, nil
}

func (h *keyHold) raiseFence(ctx context.Context, fence int64) (lease.Result, error) {
	if fence < 1 || fence > maxFence {
		return lease.Result{}, argument.Invalid("Op.Fence", strconv.FormatInt(fence, 10),
			"a token that a counter can hold: 1 to 2^53-2")
	}
	call := h.raiseFenceCall(fence)
	if _, err := h.run(ctx, &call, replyYes, replyNo, replyCounter, replyForeign); err != nil {
		return lease.Result{}, err
	}
	now, err := readFence(call.reply, 1)
	if err == nil && now < fence {
		err = malformed(fmt.Errorf("a fencing token of %d, raised to %d", now, fence))
	}
	if err != nil {
		return lease.Result{}, err
	}
	return lease.Result{Deadline: h.until(), Fence: now}, nil
}

// readOwnFence reads the fencing token in the reply to an acquire or upgrade. A token of an
// unfenced hold, or none of a fenced one, is an error.
func (h *keyHold) readOwnFence(reply driver.Reply) (int64, error) {
	fence, err := readFence(reply, 1)
	if err == nil && (fence > 0) != h.fenced() {
		return 0, malformed(fmt.Errorf("a fencing token of %d, fenced: %v", fence, h.fenced()))
	}
	return fence, err
}

// refusal returns the ContentionError for the holder in a reply.
func (h *keyHold) refusal(reply driver.Reply) error {
	spec := h.l.spec
	holder, err := spec.readHolder(reply)
	again := holder.left
	released := holder.released
	if err == nil && reply.Len() > holder.next {
		if again, err = reply.Int(holder.next); err != nil {
			err = malformed(err)
		}
		released = released || reply.Len() > holder.next+1
	}
	if err != nil {
		return err
	}
	held := &locker.ContentionError{
		Name: h.name(), Owner: holder.owner, Note: holder.note,
		Hint:     lease.Hint{Channel: h.listening(), Foreign: holder.foreign},
		Released: released,
	}
	if holder.left >= 0 {
		held.Left = fromMillis(max(holder.left, 1))
	}
	if again >= 0 {
		held.RetryAfter = fromMillis(max(again, 1))
	}
	return held
}

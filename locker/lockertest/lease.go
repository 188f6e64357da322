package lockertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// source is the Source in traces.
var source = locktrace.Source{Strategy: "lockertest", Client: "memory"}

// hold is one hold and its lease. Locker.mu guards it.
type hold struct {
	locks             *Locker
	tenures           *tenures
	name, owner, note string
	token             string
	mode              locker.Mode
	permits           int // of a semaphore
	ttl               time.Duration
	until             time.Time // the end of the lease
	fence             int64
	lock              lease.Hold // nil until it was made
	expired           bool       // by Locker.Expire
	minHold           time.Duration
	released          bool  // it only keeps the name taken, until end
	over              *hold // the hold it took over; nil: it was acquired
	unrecorded        bool  // Locker.Hold made it: its calls are not recorded
}

// begin gives the hold its token, its lease of at least minHold and, if fenced, its fencing token.
// Readers get the last writer's.
func (h *hold) begin(ttl, minHold time.Duration, fenced bool) {
	h.minHold = minHold.Truncate(time.Millisecond)
	h.token, h.ttl = lease.NewToken(), max(ttl.Truncate(time.Millisecond), h.minHold)
	h.until = time.Now().Add(h.ttl)
	switch {
	case !fenced:
	case h.mode == locker.Shared && h.tenures.fence > 0:
		h.fence = h.tenures.fence
	default:
		h.fence = h.tenures.mint()
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// extend moves the end of the lease, never back.
func (h *hold) extend(until time.Time) {
	if until.After(h.until) {
		h.until = until
	}
}

func (h *hold) info() lease.HoldInfo {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	return lease.HoldInfo{
		Name: h.name, Owner: h.owner, Token: h.token, Mode: h.mode, TTL: h.ttl, Deadline: h.until, Fence: h.fence,
		MinHold: h.minHold,
	}
}

// Traits returns those of the Locker.
func (h *hold) Traits() lease.Traits { return h.locks.Traits() }

// Token returns the token of the hold: a change of the note replaces the token.
func (h *hold) Token() string {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	return h.token
}

// Do implements lease.Lease.
func (h *hold) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	done := h.record(op)
	result, err := h.do(ctx, op)
	done(err)
	return result, err
}

func (h *hold) do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if err := h.reach(ctx, op); err != nil {
		return lease.Result{}, err
	}
	defer h.locks.mu.Unlock()
	if err := h.locks.faults.of(op.Kind); err != nil {
		return lease.Result{}, err
	}
	if h.tenures.find(h.token) != h {
		return lease.Result{}, locker.ErrLost
	}
	switch op.Kind {
	case lease.OpRenew:
		h.extend(time.Now().Add(op.TTL.Truncate(time.Millisecond)))
	case lease.OpRelease, lease.OpUndo:
		return h.end(op), nil
	case lease.OpConvert:
		if err := h.convert(op.Mode); err != nil {
			return lease.Result{}, err
		}
	case lease.OpNote:
		h.note, h.token = op.Note, lease.NewToken()
	case lease.OpRaiseFence:
		if h.fence == 0 {
			return lease.Result{}, fmt.Errorf("raise the fence of a lock that is not fenced: %w", errors.ErrUnsupported)
		}
		h.fence = max(h.fence, op.Fence)
		h.tenures.fence = max(h.tenures.fence, op.Fence)
	default:
		return lease.Result{}, fmt.Errorf("%v: %w", op.Kind, errors.ErrUnsupported)
	}
	return lease.Result{Deadline: h.until, Fence: h.fence}, nil
}

// reach waits until op can be executed; then the mutex is held. A release that cannot be executed
// now is executed when the outage is over.
func (h *hold) reach(ctx context.Context, op lease.Op) error {
	if op.Kind != lease.OpRelease && op.Kind != lease.OpUndo {
		if err := lease.ContextErr(ctx); err != nil {
			return err
		}
		h.locks.mu.Lock()
		left := time.Until(h.until)
		h.locks.mu.Unlock()
		return h.locks.reach(ctx, left)
	}
	err := h.locks.reachToRelease(ctx, h.ttl)
	if err != nil {
		h.locks.afterOutage(func() {
			if h.tenures.find(h.token) == h {
				h.end(op)
			}
		})
	}
	return err
}

// end executes op, a release or an undo, on a live hold. It returns a release's findings about
// waiters. The mutex is held.
func (h *hold) end(op lease.Op) lease.Result {
	t := h.tenures
	at := slices.Index(t.holds, h)
	switch {
	case op.Kind == lease.OpUndo && h.over != nil:
		h.over.extend(h.until)
		t.holds[at] = h.over
		return lease.Result{}
	case time.Now().Before(op.KeepUntil):
		h.released, h.until = true, earlier(h.until, op.KeepUntil)
	default:
		t.holds = slices.Delete(t.holds, at, at+1)
	}
	if op.Kind != lease.OpRelease {
		return lease.Result{}
	}
	return h.locks.wake(h.name, op)
}

// convert changes the mode. The mutex is held.
func (h *hold) convert(mode locker.Mode) error {
	if h.locks.permits > 0 {
		return fmt.Errorf("convert the permits of a semaphore: %w", errors.ErrUnsupported)
	}
	others := slices.DeleteFunc(slices.Clone(h.tenures.live()), func(other *hold) bool { return other == h })
	if mode == locker.Exclusive && len(others) > 0 {
		return refusal(others[0], lastToEnd(others).until)
	}
	if h.mode == mode {
		return nil
	}
	h.mode = mode
	if mode == locker.Shared {
		h.locks.publish(h.name)
	} else if h.fence != 0 {
		h.fence = h.tenures.mint()
	}
	return nil
}

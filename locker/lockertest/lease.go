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

// source is what traces name.
var source = locktrace.Source{Strategy: "lockertest", Client: "memory"}

// hold is one hold and its lease. Locker.mu guards it.
type hold struct {
	locks             *Locker
	tenures           *tenures
	name, owner, note string
	token             string
	mode              locker.Mode
	ttl               time.Duration
	end               time.Time // of the lease
	fence             int64
	lock              lease.Hold // nil until it was made
	expired           bool       // by Locker.Expire
	minHold           time.Duration
	released          bool  // it only keeps the name taken, until end
	over              *hold // that it was taken over from; nil: it was acquired
}

// begin gives the hold its token, its lease, which lasts for minHold at least, and its fencing
// token if it is to have one.
func (h *hold) begin(ttl, minHold time.Duration, fenced bool) {
	h.minHold = minHold.Truncate(time.Millisecond)
	h.token, h.ttl = lease.NewToken(), max(ttl.Truncate(time.Millisecond), h.minHold)
	h.end = time.Now().Add(h.ttl)
	if fenced {
		h.tenures.fence++
		h.fence = h.tenures.fence
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// extend moves the end of the lease to end, never back.
func (h *hold) extend(end time.Time) {
	if end.After(h.end) {
		h.end = end
	}
}

func (h *hold) grant() lease.Grant {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	return lease.Grant{Name: h.name, Owner: h.owner, Token: h.token, Mode: h.mode, TTL: h.ttl, Deadline: h.end, Fence: h.fence, MinHold: h.minHold}
}

// Source implements lease.Sourced.
func (h *hold) Source() locktrace.Source { return source }

// Do implements lease.Lease.
func (h *hold) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if err := locker.ContextErr(ctx); err != nil && op.Kind != lease.OpRelease && op.Kind != lease.OpUndo {
		return lease.Term{}, err
	}
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	if err := h.locks.faults.of(op.Kind); err != nil {
		return lease.Term{}, err
	}
	holds := h.tenures.live()
	if h.released || !slices.Contains(holds, h) {
		return lease.Term{}, locker.ErrLost
	}
	switch op.Kind {
	case lease.OpRenew:
		h.extend(time.Now().Add(op.TTL.Truncate(time.Millisecond)))
	case lease.OpRelease, lease.OpUndo:
		if op.Kind == lease.OpUndo && h.over != nil {
			h.over.extend(h.end)
			h.tenures.holds[slices.Index(holds, h)] = h.over
			break
		}
		if time.Now().Before(op.KeepUntil) {
			h.released, h.end = true, earlier(h.end, op.KeepUntil)
			break
		}
		h.tenures.holds = slices.DeleteFunc(holds, func(other *hold) bool { return other == h })
	case lease.OpConvert:
		if op.Mode == locker.Exclusive && len(holds) > 1 {
			others := slices.DeleteFunc(slices.Clone(holds), func(other *hold) bool { return other == h })
			return lease.Term{}, refusal(h.name, others)
		}
		h.mode = op.Mode
	case lease.OpRaiseFence:
		if h.fence == 0 {
			return lease.Term{}, fmt.Errorf("raise the fence of a lock that is not fenced: %w", errors.ErrUnsupported)
		}
		h.fence = max(h.fence, op.Fence)
		h.tenures.fence = max(h.tenures.fence, op.Fence)
	default:
		return lease.Term{}, fmt.Errorf("%v: %w", op.Kind, errors.ErrUnsupported)
	}
	return lease.Term{Deadline: h.end, Fence: h.fence}, nil
}

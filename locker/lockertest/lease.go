package lockertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// source is what traces name.
var source = locker.Source{Strategy: "lockertest", Client: "memory"}

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
	lock              *locker.Lock // nil until it was made
	expired           bool         // by Locker.Expire
	over              *hold        // that it was taken over from; nil: it was acquired
}

// begin gives the hold its token, its lease, and its fencing token if it is to have one.
func (h *hold) begin(ttl time.Duration, fenced bool) {
	h.token, h.ttl = locker.NewToken(), ttl.Truncate(time.Millisecond)
	h.end = time.Now().Add(h.ttl)
	if fenced {
		h.tenures.fence++
		h.fence = h.tenures.fence
	}
}

// extend moves the end of the lease to end, never back.
func (h *hold) extend(end time.Time) {
	if end.After(h.end) {
		h.end = end
	}
}

func (h *hold) grant() locker.Grant {
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	return locker.Grant{Name: h.name, Owner: h.owner, Token: h.token, Mode: h.mode, TTL: h.ttl, Deadline: h.end, Fence: h.fence}
}

// Source implements locker.Sourced.
func (h *hold) Source() locker.Source { return source }

// Do implements locker.Lease.
func (h *hold) Do(ctx context.Context, op locker.Op) (locker.Term, error) {
	if err := ended(ctx); err != nil && op.Kind != locker.OpRelease && op.Kind != locker.OpGiveBack {
		return locker.Term{}, err
	}
	h.locks.mu.Lock()
	defer h.locks.mu.Unlock()
	if err := h.locks.faults.of(op.Kind); err != nil {
		return locker.Term{}, err
	}
	holds := h.tenures.live()
	if !slices.Contains(holds, h) {
		return locker.Term{}, locker.ErrLost
	}
	switch op.Kind {
	case locker.OpRenew:
		h.extend(time.Now().Add(op.TTL.Truncate(time.Millisecond)))
	case locker.OpRelease, locker.OpGiveBack:
		if op.Kind == locker.OpGiveBack && h.over != nil {
			h.over.extend(h.end)
			h.tenures.holds[slices.Index(holds, h)] = h.over
			break
		}
		h.tenures.holds = slices.DeleteFunc(holds, func(other *hold) bool { return other == h })
	case locker.OpConvert:
		if op.Mode == locker.Exclusive && len(holds) > 1 {
			others := slices.DeleteFunc(slices.Clone(holds), func(other *hold) bool { return other == h })
			return locker.Term{}, refusal(h.name, others)
		}
		h.mode = op.Mode
	case locker.OpRaiseFence:
		if h.fence == 0 {
			return locker.Term{}, fmt.Errorf("raise the fence of a lock that is not fenced: %w", errors.ErrUnsupported)
		}
		h.fence = max(h.fence, op.Fence)
		h.tenures.fence = max(h.tenures.fence, op.Fence)
	default:
		return locker.Term{}, fmt.Errorf("%v: %w", op.Kind, errors.ErrUnsupported)
	}
	return locker.Term{Deadline: h.end, Fence: h.fence}, nil
}

package redlock

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// stepped returns a time that was read before somebody set the wall clock forward by step.
func stepped(at time.Time, step time.Duration) time.Time {
	type fields struct { // of time.Time, when it has both clocks
		wall uint64
		mono int64
		loc  *time.Location
	}
	earlier := at.Add(-step)
	(*fields)(unsafe.Pointer(&earlier)).mono = (*fields)(unsafe.Pointer(&at)).mono
	return earlier
}

func TestLeaseGoesByTheMonotonicClock(t *testing.T) {
	t.Parallel()
	in := func(d time.Duration) time.Time { return time.Now().Add(d) }
	for _, tt := range []struct {
		name     string
		deadline time.Time
		least    time.Duration
	}{
		{"no end", time.Time{}, time.Minute},
		{"sooner than the TTL", in(time.Second), time.Minute},
		{"later than the TTL", in(time.Hour), time.Hour},
		{"wall clock set forward", stepped(in(time.Hour), 30*time.Minute), time.Hour},
		{"wall clock set forward past it", stepped(in(time.Hour), 2*time.Hour), time.Hour},
		{"wall clock set back", stepped(in(time.Hour), -time.Hour), time.Hour},
	} {
		check.Within(t, tt.name, leaseToAsk(time.Minute, tt.deadline, time.Now()), tt.least, tt.least+tt.least/32)
	}
}

// counted is a Locker that answers an acquire once it is told to, and counts renewals. Too many of
// them fail.
type counted struct {
	*lockertest.Locker
	answer   chan struct{}
	renewals atomic.Int32
}

func (c *counted) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := c.Locker.Acquire(context.WithoutCancel(ctx), req)
	<-c.answer
	if err == nil {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return countedLease{inner, c} })
	}
	return lock, err
}

type countedLease struct {
	lease.Lease
	of *counted
}

func (l countedLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	if op.Kind == lease.OpRenew && l.of.renewals.Add(1) > 10 {
		return lease.Term{}, errors.New("too many renewals")
	}
	return l.Lease.Do(ctx, op)
}

// A late node is renewed once, up to the Deadline, also where the wall clock was set meanwhile.
func TestLateNodeCatchesUpAfterAClockStep(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		late := &counted{Locker: lockertest.New(), answer: make(chan struct{})}
		l := locker.Must(New([]locker.Locker{lockertest.New(), lockertest.New(), late}, Config{AttemptTimeout: 10 * time.Second}))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
		check.Must(t, lock.Renew(t.Context(), time.Hour))
		var h *heldLock
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
			h, _ = inner.(*heldLock)
			return inner
		})
		h.mu.Lock()
		end := h.deadline
		h.deadline = stepped(end, step)
		h.mu.Unlock()
		close(late.answer)
		caughtUp := func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			p := h.slots[2].held
			return p != nil && p.renewing == nil && late.renewals.Load() > 0
		}
		for start := time.Now(); !caughtUp() && time.Since(start) < 10*time.Second; {
			runtime.Gosched()
		}
		check.Equal(t, "renewals after a step of "+step.String(), late.renewals.Load(), 1)
		s, err := late.Inspect(t.Context(), "job")
		if err != nil || time.Now().Add(s.Left).Before(end) {
			t.Errorf("a step of %v: %v left at the late node, %v; want %v", step, s.Left, err, time.Until(end))
		}
		_ = lock.Release(t.Context())
	}
}

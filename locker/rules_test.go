package locker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/lease"
)

type noLease struct{}

func (noLease) Do(context.Context, lease.Op) (lease.Result, error) { return lease.Result{}, nil }

// Timers stand still while a machine is suspended. So the wait for the end checks the wall clock
// each eighth of the TTL, but at least each 10 s and at most each second. A suspension suddenly
// brings the Deadline nearer.
func TestSuspensionIsNoticed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ttl, at, left, ends time.Duration }{
		{80 * time.Second, time.Second, 0, 10 * time.Second},                     // past the lease: found at the next check
		{80 * time.Second, time.Second, 14 * time.Second, 15 * time.Second},      // nearer: to the instant
		{80 * time.Second, 25 * time.Second, time.Second, 30 * time.Second},      // between two checks
		{2 * time.Second, 100 * time.Millisecond, 0, time.Second},                // short leases: each second
		{24 * time.Hour, 0, time.Hour, time.Hour},                                // long ones: every 10 s
		{80 * time.Second, 0, 90 * time.Second, 90 * time.Second},                // and later, by a renewal
		{time.Millisecond, 0, 500 * time.Microsecond, 1 * time.Millisecond},      // shorter than any interval
		{80 * time.Second, 75 * time.Second, time.Second, 80 * time.Second},      // just before the end
		{80 * time.Second, 0, 80*time.Second + 1, 80*time.Second + 1},            // one nanosecond
		{10 * time.Second, 9999 * time.Millisecond, 0, 10000 * time.Millisecond}, // just before a check
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			lock := NewLock(t.Context(), lease.HoldInfo{Name: "a", Token: "t", TTL: tt.ttl, Deadline: start.Add(tt.ttl)}, noLease{})
			done := lock.Done()
			<-time.After(tt.at)
			lock.load().mu.Lock()
			lock.load().info().Deadline = time.Now().Add(tt.left)
			lock.load().mu.Unlock()
			<-done
			if got := time.Since(start); got != tt.ends {
				t.Errorf("TTL %v, %v left after %v: Done closed after %v, want %v", tt.ttl, tt.left, tt.at, got, tt.ends)
			}
		})
	}
}

func TestWatchView(t *testing.T) {
	t.Parallel()
	failure, final := errors.New("connection refused"), ErrClosed
	a := State{Held: true, Owner: "a", Holds: 1, Left: time.Minute, Fence: 5}
	renewed, noted, next, readers, others := a, a, a, a, a
	renewed.Left = time.Hour
	noted.Note = "why"
	next.Fence = 6
	readers.Mode, readers.Holds = Shared, 2
	others.Mode, others.Holds, others.Owner, others.Note = Shared, 2, "b", "note"
	fewer := others
	fewer.Holds = 1
	type look struct {
		state State
		err   error
		yield bool
	}
	check.Each(t, map[string][]look{
		"free, held, free":                 {{yield: true}, {}, {state: a, yield: true}, {state: a}, {yield: true}},
		"a renewal":                        {{state: a, yield: true}, {state: renewed}},
		"another note":                     {{state: a, yield: true}, {state: noted, yield: true}},
		"another fencing token":            {{state: a, yield: true}, {state: next, yield: true}},
		"of two readers another ends last": {{state: readers, yield: true}, {state: others}, {state: fewer, yield: true}},
		"an outage":                        {{state: a, yield: true}, {err: failure, yield: true}, {err: failure}, {state: a, yield: true}, {err: failure, yield: true}},
		"an outage first":                  {{err: failure, yield: true}, {yield: true}},
		"an outage, then the last":         {{err: failure, yield: true}, {err: final, yield: true}},
	}, func(t *testing.T, looks []look) {
		var v view
		for i, l := range looks {
			if got := v.update(l.state, l.err); got != l.yield {
				t.Errorf("look %d: yields %t, want %t", i, got, l.yield)
			}
			if l.err == nil && v.state != l.state {
				t.Errorf("look %d: knows %+v, want %+v", i, v.state, l.state)
			}
		}
	})
}

func TestUntilPoll(t *testing.T) {
	t.Parallel()
	for what, tc := range map[string]struct {
		state    State
		interval time.Duration
		want     time.Duration
	}{
		"free":                {State{}, time.Second, time.Second},
		"held for long":       {State{Held: true, Left: time.Minute}, time.Second, time.Second},
		"held for a moment":   {State{Held: true, Left: 20 * time.Millisecond}, time.Second, 21 * time.Millisecond},
		"held without an end": {State{Held: true}, time.Second, time.Second},
		"held for no time":    {State{Held: true, Left: time.Microsecond}, time.Second, watchPause},
		"a short interval":    {State{}, time.Nanosecond, watchPause},
	} {
		check.Equal(t, what, untilPoll(tc.state, tc.interval), tc.want)
	}
}

// skewed is a time with disagreeing clocks: wall by the wall clock, mono by the monotonic one. Such
// is a Deadline after a suspension of the machine, when the monotonic clock stood still, or after
// the wall clock was set.
func skewed(wall, mono time.Time) time.Time {
	type fields struct { // of time.Time, when it has both clocks
		wall uint64
		mono int64
		loc  *time.Location
	}
	(*fields)(unsafe.Pointer(&wall)).mono = (*fields)(unsafe.Pointer(&mono)).mono
	return wall
}

// A lock ends by the clock with less time left, and so does its timer. The times are so far apart
// that the speed of the machine does not matter.
func TestLeftByBothClocks(t *testing.T) {
	t.Parallel()
	const hour, later = time.Hour, 5 * time.Hour
	type test struct {
		wall, mono, left time.Duration
		ended            bool
	}
	check.Each(t, map[string]test{
		"both ahead":                  {later, later, later, false},
		"wall clock sooner":           {hour, later, hour, false},
		"monotonic clock sooner":      {later, hour, hour, false},
		"suspended past the lease":    {-hour, later, -hour, true},
		"the wall clock was set back": {later, -hour, -hour, true},
		"both passed":                 {-hour, -hour, -hour, true},
	}, func(t *testing.T, tt test) {
		now := time.Now()
		l := new(lockState)
		l.hidden.Store(&hidden{info: lease.HoldInfo{TTL: hour, Deadline: skewed(now.Add(tt.wall), now.Add(tt.mono))}})
		check.Equal(t, "left", l.left().Round(hour), tt.left)
		check.Equal(t, "the timer has passed", l.tick() < 0, tt.ended)
		check.Equal(t, "expired", l.peek() != nil, tt.ended)
		l.info().Deadline = now.Add(tt.wall).Round(0)
		check.Equal(t, "left without a monotonic clock", l.left().Round(hour), tt.wall)
	})
}

// Beyond maxReports the oldest droppable report is dropped, and no other.
func TestReportsAdd(t *testing.T) {
	t.Parallel()
	var rs reports
	var ran []int
	add := func(i int, droppable bool) { rs.add(report{func() { ran = append(ran, i) }, droppable}) }
	add(0, false)
	for i := range maxReports + 1 {
		add(1+i, true) // the last two drop 1 and 2
	}
	check.Equal(t, "reports", len(rs.queue), maxReports)
	rs.queue[0].run()
	rs.queue[1].run()
	rs.queue[maxReports-1].run()
	check.EqualSlices(t, "the first two and the last", ran, []int{0, 3, maxReports + 1})
	rs = reports{}
	for i := range maxReports + 1 {
		add(i, i == 0)
	}
	check.Equal(t, "reports of which the first may be dropped", len(rs.queue), maxReports)
}

// More reports than one caller runs are all run: undroppable ones are never dropped.
func TestReportsOfManyEvents(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l, ran := &lockState{}, 0
		for range maxReports + 1 {
			l.enqueue(report{run: func() { ran++ }})
		}
		l.mu.Lock()
		l.unlockAndCall(nil, false)
		synctest.Wait()
		check.Equal(t, "reports", ran, maxReports+1)
	})
}

// However many layers an error passes, one OpError wraps it.
func TestErrorsAreWrappedOnce(t *testing.T) {
	t.Parallel()
	inner := &OpError{Op: "renew", Name: "node", Err: errors.New("READONLY")}
	for _, below := range []error{inner, fmt.Errorf("quorum: %w", inner)} {
		check.Equal(t, "error", opError("release", "a", below), below)
	}
}

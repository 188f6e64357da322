package lockertest_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

var outages = map[string]lockertest.Outage{"refused": lockertest.Refused, "silent": lockertest.Silent}

// Calls held up by an outage go on after it.
func TestCallsGoOnAfterASilentOutage(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l, start := lockertest.New(), time.Now()
		held := acquire(t, l, locker.Request{Name: "held", TTL: time.Minute})
		released := acquire(t, l, locker.Request{Name: "released", TTL: time.Minute})
		l.SetOutage(lockertest.Silent)
		time.AfterFunc(time.Second, func() { l.SetOutage(lockertest.Refused) }) // a sent call stays sent
		time.AfterFunc(2*time.Second, func() { l.SetOutage(lockertest.NoOutage) })
		calls := map[string]func() error{
			"Acquire": func() error {
				_, err := l.Acquire(t.Context(), locker.Request{Name: "free"})
				return err
			},
			"Renew":   func() error { return held.Renew(t.Context(), 0) },
			"Release": func() error { return released.Release(t.Context()) },
		}
		done := make(chan error)
		for name, call := range calls {
			go func() {
				err := call()
				check.Took(t, name, start, 2*time.Second)
				done <- err
			}()
		}
		check.Advance(time.Second)
		check.Equal(t, "calls of a known outcome", len(l.Calls()), 2)
		for range calls {
			check.Error(t, "a call in an outage", <-done)
		}
		for _, call := range l.Calls()[2:] { // recorded when its outcome is known
			check.Equal(t, "arrival of "+call.String(), call.At, start)
			check.Equal(t, "time of "+call.String(), call.Took, 2*time.Second)
		}
		if !inspect(t, l, "free").Held || inspect(t, l, "released").Held || inspect(t, l, "held").Left != time.Minute {
			t.Errorf("free: %+v, released: %+v, held: %+v", inspect(t, l, "free"), inspect(t, l, "released"), inspect(t, l, "held"))
		}
	})
}

// A failed release is executed after the outage, as by a strategy's clean-up.
func TestReleaseAfterAnOutage(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, outages, func(t *testing.T, kind lockertest.Outage) {
		l := lockertest.New()
		for name, release := range map[string]func(*locker.Lock) error{
			"Release":       func(lock *locker.Lock) error { return lock.Release(t.Context()) },
			"ReleaseHandle": func(lock *locker.Lock) error { return l.ReleaseHandle(t.Context(), lock.Handle()) },
		} {
			for _, minHold := range []time.Duration{0, 30 * time.Minute} {
				lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Hour, MinHold: minHold})
				l.SetOutage(kind)
				check.Equal(t, name+" succeeds in an outage", release(lock) == nil, false)
				check.Advance(time.Minute)
				l.SetOutage(lockertest.NoOutage)
				state := inspect(t, l, "a")
				if state.Held != (minHold > 0) || state.Holds != 0 || state.Left > minHold-time.Minute && minHold > 0 {
					t.Errorf("after %s with a MinHold of %v, and the outage: %+v", name, minHold, state)
				}
				check.Advance(minHold)
			}
		}
	})
}

// A late release must not end the hold of the next holder.
func TestReleaseAfterAnOutageIsOfItsHold(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Second})
		l.SetOutage(lockertest.Refused)
		check.Error(t, "Release", lock.Release(t.Context()), syscall.ECONNREFUSED)
		check.Advance(time.Second)
		next := l.Hold(locker.Request{Name: "a"})
		l.SetOutage(lockertest.NoOutage)
		if !inspect(t, l, "a").Held || next.Err() != nil {
			t.Errorf("the next holder has %v", next)
		}
	})
}

// Failures are kept for calls that reach the server.
func TestFailuresOutliveAnOutage(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	l.FailAcquire(errFirst)
	l.SetOutage(lockertest.Refused)
	_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
	check.Error(t, "Acquire in the outage", err, driver.ErrNotSent)
	l.SetOutage(lockertest.Refused)
	l.SetOutage(lockertest.NoOutage)
	_, err = l.Acquire(t.Context(), locker.Request{Name: "a"})
	check.Error(t, "Acquire after it", err, errFirst)
}

func TestBadOutage(t *testing.T) {
	t.Parallel()
	check.Panics(t, nil, func() { lockertest.New().SetOutage(-1) })
	check.Panics(t, nil, func() { lockertest.New().SetOutage(lockertest.Silent + 1) })
	check.Equal(t, "String", lockertest.Outage(7).String()+" "+lockertest.NoOutage.String(), "Outage(7) no outage")
}

// A Break that found the holds and met an outage ends them after it, and no later ones.
func TestBreakAfterAnOutage(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		for _, name := range []string{"a", "b"} {
			lock := acquire(t, l, locker.Request{Name: name, TTL: time.Minute})
			_, end, err := l.FindHolds(t.Context(), name)
			check.Error(t, "FindHolds", err)
			l.SetOutage(lockertest.Silent)
			check.Error(t, "Break in the outage", end(t.Context()), locker.ErrUnknownOutcome)
			l.SetOutage(lockertest.Refused)
			_, err = locker.Break(t.Context(), l, name)
			check.Error(t, "Break that finds nothing out", err, driver.ErrNotSent)
			if name == "b" {
				<-lock.Done()
				l.Hold(locker.Request{Name: name})
			}
			l.SetOutage(lockertest.NoOutage)
			check.Equal(t, name+" is held", inspect(t, l, name).Held, name == "b")
		}
	})
}

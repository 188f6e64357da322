package locker_test

import (
	"context"
	"io"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// recorder writes down what a Trace reports.
type recorder struct {
	events []string
	last   any
	ctx    context.Context //nolint:containedctx // what was reported with
}

// trace is a Trace of r whose events have a prefix.
func (r *recorder) trace(prefix string) *locktrace.Trace {
	t := new(locktrace.Trace)
	eachEvent(t, func(name string, event reflect.Value) {
		event.Set(reflect.MakeFunc(event.Type(), func(args []reflect.Value) []reflect.Value {
			r.events, r.last = append(r.events, prefix+name), args[1].Interface()
			r.ctx, _ = reflect.TypeAssert[context.Context](args[0])
			return nil
		}))
	})
	return t
}

// eachEvent calls f with each field of t.
func eachEvent(t *locktrace.Trace, f func(name string, event reflect.Value)) {
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		f(v.Type().Field(i).Name, v.Field(i))
	}
}

func TestWithTrace(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	if locktrace.From(ctx) != nil {
		t.Error("a Trace in a ctx without")
	}
	if locktrace.With(ctx, nil) != ctx {
		t.Error("WithTrace of nil makes another ctx")
	}
	var r recorder
	one := locktrace.With(ctx, r.trace("1 "))
	both := locktrace.With(locktrace.With(one, nil), r.trace("2 "))
	three := locktrace.With(both, r.trace("3 "))
	for _, tt := range []struct {
		ctx   context.Context
		order []string // the newest first
	}{{one, []string{"1 "}}, {both, []string{"2 ", "1 "}}, {three, []string{"3 ", "2 ", "1 "}}} {
		r.events = nil
		var want []string
		eachEvent(locktrace.From(tt.ctx), func(name string, event reflect.Value) {
			event.Call([]reflect.Value{reflect.ValueOf(tt.ctx), reflect.Zero(event.Type().In(1))})
			for _, prefix := range tt.order {
				want = append(want, prefix+name)
			}
		})
		check.EqualSlices(t, "events", r.events, want)
	}
}

// Where only one of two traces wants an event, it gets it once; where none does, the composed Trace
// has none.
func TestWithTraceOfParts(t *testing.T) {
	t.Parallel()
	var r recorder
	outer, inner := r.trace("o "), r.trace("i ")
	outer.Acquired, outer.Lost, inner.Released, inner.Lost = nil, nil, nil, nil
	got := locktrace.From(locktrace.With(locktrace.With(t.Context(), outer), inner))
	got.Acquired(t.Context(), locktrace.AcquiredInfo{})
	got.Released(t.Context(), locktrace.ReleasedInfo{})
	if want := []string{"i Acquired", "o Released"}; !slices.Equal(r.events, want) || got.Lost != nil {
		t.Errorf("events %v, Lost is there: %v; want %v and none", r.events, got.Lost != nil, want)
	}
	if outer.Acquired != nil || inner.Released != nil {
		t.Error("composing changed a Trace of the caller")
	}
}

func TestLockIsTraced(t *testing.T) {
	t.Parallel()
	source := locktrace.Source{Strategy: "test", Client: "none", Address: "nowhere:0"}
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var r recorder
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		start := time.Now()
		deadline := start.Add(time.Minute)
		l := &fakeLease{}
		lock := locker.NewLock(locktrace.With(ctx, r.trace("")), lease.Grant{
			Name: "a", Owner: "me", Token: secret, Mode: locker.Shared, TTL: time.Minute, Deadline: deadline, Fence: 7,
		}, l)
		cancel()
		want := func(event string, info any) {
			t.Helper()
			if len(r.events) == 0 || r.events[len(r.events)-1] != event || r.last != info {
				t.Errorf("events %v with %+v, want %s with %+v", r.events, r.last, event, info)
			}
			if r.ctx.Value(key{}) != "v" || r.ctx.Err() != nil {
				t.Errorf("%s with a ctx of value %v, Err %v; want the values of the acquire's, and no end", event, r.ctx.Value(key{}), r.ctx.Err())
			}
		}
		want("Acquired", locktrace.AcquiredInfo{
			Source: source, Name: "a", Owner: "me", Mode: "shared", TTL: time.Minute, Deadline: deadline, Fence: 7,
		})
		check.Advance(time.Second)
		check.Error(t, "Renew", lock.Renew(t.Context(), time.Hour))
		want("Renewed", locktrace.RenewedInfo{Source: source, Name: "a", TTL: time.Hour, Deadline: start.Add(time.Second + time.Hour)})
		l.answer = refusing(io.EOF).answer
		err := lock.Renew(t.Context(), 0)
		want("Renewed", locktrace.RenewedInfo{Source: source, Name: "a", TTL: time.Minute, Deadline: start.Add(time.Second + time.Hour), Err: err})
		check.Error(t, "Renew", err, io.EOF)
		l.answer = nil
		check.Error(t, "Release", lock.Release(t.Context()))
		want("Released", locktrace.ReleasedInfo{Source: source, Name: "a", Mode: "shared", Held: time.Second})
		if want := []string{"Acquired", "Renewed", "Renewed", "Released"}; !slices.Equal(r.events, want) {
			t.Errorf("events %v, want %v: a released lock is not lost", r.events, want)
		}
	})
}

// A loss is reported when it happens, to whoever asked for it: the lock that its holder forgot is
// the one to hear of.
func TestLossIsTraced(t *testing.T) {
	t.Parallel()
	type test struct {
		end  func(*testing.T, *locker.Lock)
		want []error
		held time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"marked":               {func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }, []error{locker.ErrLost, io.EOF}, 0},
		"found out by Renew":   {func(t *testing.T, lock *locker.Lock) { _ = lock.Renew(t.Context(), 0) }, []error{locker.ErrLost}, 0},
		"nobody looks":         {func(*testing.T, *locker.Lock) { check.Advance(time.Hour) }, []error{locker.ErrLost}, time.Minute},
		"somebody waits":       {func(_ *testing.T, lock *locker.Lock) { <-lock.Done(); check.Advance(1) }, []error{locker.ErrLost}, time.Minute},
		"found out by Release": {func(t *testing.T, lock *locker.Lock) { check.Advance(time.Hour); _ = lock.Release(t.Context()) }, []error{locker.ErrLost}, time.Minute},
	}, func(t *testing.T, tt test) {
		var lost []locktrace.LostInfo
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Lost: func(_ context.Context, info locktrace.LostInfo) { lost = append(lost, info) }})
		lock := minute(ctx, refusing(locker.ErrNotHeld))
		tt.end(t, lock)
		_ = lock.Err()
		_ = lock.Release(t.Context())
		if len(lost) != 1 || lost[0].Name != "a" || lost[0].Strategy != "test" || lost[0].Held != tt.held {
			t.Fatalf("reported %+v, want one loss after %v", lost, tt.held)
		}
		check.Error(t, "reported", lost[0].Err, tt.want...)
	})
}

// Who does not trace pays nothing: a Lock is two allocations, and the ctx of an operation another.
func TestTraceCostsNothingWhenAbsent(t *testing.T) {
	ctx := context.Background()
	var l lease.Lease = leaseFunc(func(context.Context, lease.Op) (lease.Term, error) { return lease.Term{}, nil })
	g := lease.Grant{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Hour)}
	lock := locker.NewLock(ctx, g, l)
	for name, tt := range map[string]struct {
		want float64
		f    func()
	}{
		"TraceFrom":                  {0, func() { _ = locktrace.From(ctx) }},
		"Renew":                      {1, func() { _ = lock.Renew(ctx, 0) }},
		"Err, Deadline, Fence, Mode": {0, func() { _, _, _, _ = lock.Err(), lock.Deadline(), lock.Fence(), lock.Mode() }},
		"NewLock and Release":        {2, func() { _ = locker.NewLock(ctx, g, l).Release(ctx) }},
	} {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tt.want)
		}
	}
}

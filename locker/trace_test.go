package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// recorder records the reports of a Trace.
type recorder struct {
	events []string
	last   any
	ctx    context.Context //nolint:containedctx // that of the report
}

// trace returns a Trace that records to r.
func (r *recorder) trace() *locktrace.Trace {
	t := new(locktrace.Trace)
	v := reflect.ValueOf(t).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		v.Field(i).Set(reflect.MakeFunc(v.Field(i).Type(), func(args []reflect.Value) []reflect.Value {
			r.events, r.last = append(r.events, name), args[1].Interface()
			r.ctx, _ = reflect.TypeAssert[context.Context](args[0])
			return nil
		}))
	}
	return t
}

// A Lock reports to the Trace of its acquire, and to a later added one. Each gets its own ctx,
// which does not end.
func TestLockIsTraced(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		type key struct{}
		var made, added recorder
		under := func(r *recorder) context.Context {
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, r))
			cancel()
			return ctx
		}
		source := locktrace.Source{Strategy: "test", Client: "none", Address: "nowhere:0"}
		start, server := time.Now(), &fakeLease{}
		deadline := start.Add(time.Minute)
		lock := locker.NewLock(locktrace.With(under(&made), made.trace()), lease.HoldInfo{
			Name: "a", Owner: "me", Token: secret, Mode: locker.Shared, TTL: time.Minute, Deadline: deadline, Fence: 7,
		}, server)
		want := func(r *recorder, event string, info any) {
			t.Helper()
			synctest.Wait() // a renewal of the Hold is reported behind it
			if len(r.events) == 0 || r.events[len(r.events)-1] != event || r.last != info {
				t.Errorf("events %v with %+v, want %s with %+v", r.events, r.last, event, info)
			}
			if r.ctx.Value(key{}) != r || r.ctx.Err() != nil {
				t.Errorf("%s: the ctx has another's values, or Err %v", event, r.ctx.Err())
			}
		}
		wantBoth := func(event string, info any) {
			t.Helper()
			want(&made, event, info)
			want(&added, event, info)
		}
		want(&made, "Acquired", locktrace.AcquiredInfo{
			Source: source, Name: "a", Owner: "me", Mode: "shared", TTL: time.Minute, Deadline: deadline, Fence: 7,
		})
		check.Advance(time.Second)
		lock.Hold().Trace(under(&added), added.trace())
		deadline = start.Add(time.Second + time.Hour)
		check.Error(t, "Renew", lock.Renew(t.Context(), time.Hour))
		wantBoth("Renewed", locktrace.RenewedInfo{Source: source, Name: "a", TTL: time.Hour, Deadline: deadline})
		check.Error(t, "Renew of its Hold", lock.Hold().Renew(t.Context()))
		check.Equal(t, "asked for", server.asked()[1], lease.Op{Kind: lease.OpRenew, TTL: time.Minute})
		wantBoth("Renewed", locktrace.RenewedInfo{Source: source, Name: "a", TTL: time.Minute, Deadline: deadline})
		server.answer = refusing(io.EOF).answer
		err := lock.Renew(t.Context(), 0)
		check.Error(t, "Renew", err, io.EOF)
		wantBoth("Renewed", locktrace.RenewedInfo{Source: source, Name: "a", TTL: time.Minute, Deadline: deadline, Err: err})
		server.answer = nil
		check.Error(t, "Release", lock.Release(t.Context()))
		wantBoth("Released", locktrace.ReleasedInfo{Source: source, Name: "a", Mode: "shared", Held: time.Second})
		check.Error(t, "second Release", lock.Release(t.Context()), locker.ErrReleased)
		// A released lock is not lost.
		check.EqualSlices(t, "of the acquire's Trace", made.events, []string{"Acquired", "Renewed", "Renewed", "Renewed", "Released"})
		check.EqualSlices(t, "of the added Trace", added.events, []string{"Renewed", "Renewed", "Renewed", "Released"})
	})
}

// Without a Trace nothing is paid: a Lock is two allocations, and the ctx of an operation another.
func TestTraceCostsNothingWhenAbsent(t *testing.T) {
	ctx := context.Background()
	var l lease.Lease = leaseFunc(func(context.Context, lease.Op) (lease.Result, error) { return lease.Result{}, nil })
	g := lease.HoldInfo{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Hour)}
	lock := locker.NewLock(ctx, g, l)
	traced := locker.NewLock(locktrace.With(ctx, &locktrace.Trace{Lost: func(context.Context, locktrace.LostInfo) {}}), g, l)
	for name, tt := range map[string]struct {
		want float64
		f    func()
	}{
		"TraceFrom":                   {0, func() { _ = locktrace.From(ctx) }},
		"Renew":                       {1, func() { _ = lock.Renew(ctx, 0) }},
		"Renew, traced by no Renewed": {1, func() { _ = traced.Renew(ctx, 0) }},
		"Err, Deadline, Fence, Mode":  {0, func() { _, _, _, _ = lock.Err(), lock.Deadline(), lock.Fence(), lock.Mode() }},
		"NewLock and Release":         {2, func() { _ = locker.NewLock(ctx, g, l).Release(ctx) }},
	} {
		if got := testing.AllocsPerRun(100, tt.f); got > tt.want {
			t.Errorf("%s: %v allocations, want %v", name, got, tt.want)
		}
	}
}

// A loss is reported once, when it happens and even if the lock is not used: to the Trace of the
// acquire, and to one added before or after the end.
func TestLossIsTraced(t *testing.T) {
	t.Parallel()
	marked := func(l *locker.Lock) { l.Hold().MarkLost(io.EOF) }
	passed := func(*locker.Lock) { check.Advance(time.Hour) }
	released := func(l *locker.Lock) { _ = l.Release(context.Background()) }
	both := func(one, other func(*locker.Lock)) func(*locker.Lock) {
		return func(l *locker.Lock) { one(l); other(l) }
	}
	type test struct {
		before, after func(*locker.Lock)
		want          []string
		held          time.Duration // before the loss
		alone         bool          // the acquire has no Trace
	}
	check.EachInFakeTime(t, map[string]test{
		"marked before":            {before: marked, want: []string{"Lost"}},
		"past Deadline before":     {before: passed, want: []string{"Lost"}, held: time.Minute},
		"marked after":             {after: marked, want: []string{"Lost"}},
		"nobody looks":             {after: passed, want: []string{"Lost"}, held: time.Minute},
		"nobody looks, alone":      {after: passed, want: []string{"Lost"}, held: time.Minute, alone: true},
		"somebody waits":           {after: func(l *locker.Lock) { <-l.Done(); check.Advance(1) }, want: []string{"Lost"}, held: time.Minute},
		"found out by Renew":       {after: func(l *locker.Lock) { _ = l.Renew(context.Background(), 0) }, want: []string{"Lost", "Renewed"}},
		"found out by Release":     {after: both(passed, released), want: []string{"Lost", "Released"}, held: time.Minute},
		"released before":          {before: released, want: []string{"Released"}},
		"lost and released before": {before: both(marked, released), want: []string{"Lost", "Released"}},
		"released after losing":    {after: both(marked, released), want: []string{"Lost", "Released"}},
		"released after, was ok":   {after: both(released, passed), want: []string{"Released"}},
	}, func(t *testing.T, tt test) {
		var made, added recorder
		var lost []locktrace.LostInfo
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Lost: func(_ context.Context, info locktrace.LostInfo) { lost = append(lost, info) }})
		ctx = locktrace.With(ctx, made.trace())
		if tt.alone {
			ctx = t.Context()
		}
		lock := minute(ctx, refusing(locker.ErrNotHeld))
		if tt.before != nil {
			tt.before(lock)
		}
		lock.Hold().Trace(t.Context(), added.trace())
		if tt.after != nil {
			tt.after(lock)
		}
		synctest.Wait()
		check.EqualSlices(t, "the added Trace heard", added.events, tt.want)
		if !tt.alone {
			check.EqualSlices(t, "the Trace of the acquire heard", made.events, append([]string{"Acquired"}, tt.want...))
		}
		for _, info := range lost {
			if info.Name != "a" || info.Strategy != "test" || info.Held != tt.held {
				t.Errorf("reported %+v, want a loss after %v", info, tt.held)
			}
			check.Error(t, "reported", info.Err, lock.Err(), locker.ErrLost)
		}
	})
}

// The ctx of the work has the values added by middleware; the outer value wins.
func TestWrapContext(t *testing.T) {
	t.Parallel()
	type inner struct{}
	type both struct{}
	lock := locker.NewLock(t.Context(), lease.HoldInfo{Name: "a", Token: secret, Owner: "me"}, &fakeLease{})
	lock.Hold().Trace(t.Context(), nil) // changes nothing
	lock.Hold().WrapContext(func(ctx context.Context) context.Context {
		return context.WithValue(context.WithValue(ctx, inner{}, 1), both{}, 1)
	})
	lock.Hold().WrapContext(func(ctx context.Context) context.Context { return context.WithValue(ctx, both{}, 2) })
	l := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return lock, nil })
	err := locker.Do(t.Context(), l, locker.Request{Name: "a"}, func(ctx context.Context, _ *locker.Lock) error {
		if ctx.Value(inner{}) != 1 || ctx.Value(both{}) != 2 {
			t.Errorf("the work's ctx has %v and %v, want 1 and 2", ctx.Value(inner{}), ctx.Value(both{}))
		}
		if owner, ok := lease.OwnerFrom(ctx, "a"); owner != "me" || !ok {
			t.Errorf("the work's ctx has owner %q", owner)
		}
		return nil
	})
	check.Error(t, "Do", err)
}

// diary keeps reports, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) notef(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, fmt.Sprintf(format, args...))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

// A panicking callback prevents no other callback, no end of a context, and no sending of a
// release.
func TestPanicInAfterDone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer   error
		end      func(lock *locker.Lock) error
		op       lease.OpKind
		reported string
	}{
		{nil, func(lock *locker.Lock) error { return lock.Release(t.Context()) }, lease.OpRelease, "released"},
		{locker.ErrNotHeld, func(lock *locker.Lock) error { return lock.Renew(t.Context(), 0) }, lease.OpRenew, "renewed"},
	} {
		var told diary
		l := refusing(tt.answer)
		lock := minute(locktrace.With(t.Context(), &locktrace.Trace{
			Renewed:  func(context.Context, locktrace.RenewedInfo) { told.notef("renewed") },
			Released: func(context.Context, locktrace.ReleasedInfo) { told.notef("released") },
		}), l)
		lock.AfterDone(func(error) { told.notef("first") })
		lock.AfterDone(func(error) { panic("out of order") })
		lock.AfterDone(func(error) { told.notef("last") })
		work, cancel := lock.Context(t.Context())
		defer cancel()
		check.Panics(t, "out of order", func() { t.Errorf("no panic, but %v", tt.end(lock)) })
		if work.Err() == nil {
			t.Error("the context has not ended")
		}
		if got, want := told.read(), []string{"first", "last", tt.reported}; !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
		if asked := l.asked(); len(asked) != 1 || asked[0].Kind != tt.op {
			t.Errorf("asked the server for %v", asked)
		}
	}
}

// The events of a lock are reported in order, however slow a callback is. Neither Release nor the
// end of the lock's contexts waits for it.
func TestReportsInOrder(t *testing.T) {
	t.Parallel()
	renew := func(lock *locker.Lock) { _ = lock.Renew(context.Background(), 0) }
	type test struct {
		slow string // the blocked callback
		lose func(lock *locker.Lock)
		want []string
	}
	check.EachInFakeTime(t, map[string]test{
		"a slow Lost, found by Err":   {"lost", func(lock *locker.Lock) { check.Advance(time.Hour); _ = lock.Err() }, []string{"lost", "done", "released"}},
		"a slow Lost, found by Done":  {"lost", func(lock *locker.Lock) { check.Advance(time.Hour); <-lock.Done() }, []string{"lost", "done", "released"}},
		"a slow Lost, marked":         {"lost", func(lock *locker.Lock) { lock.Hold().MarkLost(nil) }, []string{"lost", "done", "released"}},
		"a slow Lost, found by Renew": {"lost", renew, []string{"lost", "done", "renewed", "released"}},
		"a slow Lost, found by the watchdog": {
			"lost", func(lock *locker.Lock) { _ = lock.Hold().Renew(context.Background()) },
			[]string{"lost", "done", "renewed", "released"},
		},
		"a slow AfterDone": {"done", renew, []string{"lost", "done", "renewed", "released"}},
		"a slow Renewed":   {"renewed", renew, []string{"lost", "done", "renewed", "released"}},
	}, func(t *testing.T, tt test) {
		var events diary
		free := make(chan struct{})
		event := func(name string) {
			if name == tt.slow {
				<-free
			}
			events.notef("%s", name)
		}
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Renewed:  func(context.Context, locktrace.RenewedInfo) { event("renewed") },
			Released: func(context.Context, locktrace.ReleasedInfo) { event("released") },
			Lost:     func(context.Context, locktrace.LostInfo) { event("lost") },
		})
		lock := minute(ctx, refusing(locker.ErrNotHeld))
		lock.AfterDone(func(error) { event("done") })
		work, cancel := lock.Context(t.Context())
		defer cancel()
		go tt.lose(lock)
		check.Advance(2 * time.Hour)
		synctest.Wait()
		check.Error(t, "Cause while the callback blocks", context.Cause(work), locker.ErrLost)
		released := false
		go func() { _ = lock.Release(t.Context()); released = true }()
		synctest.Wait()
		if !released {
			t.Error("Release waits for a callback")
		}
		close(free)
		synctest.Wait()
		check.EqualSlices(t, "reported", events.read(), tt.want)
	})
}

// A blocked callback does not keep AfterDone from reporting the lock's end, whatever caused it.
func TestAfterDoneBesideABlockedCallback(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(lock *locker.Lock, server *fakeLease){
		"Deadline": func(*locker.Lock, *fakeLease) { check.Advance(time.Minute) },
		"MarkLost": func(lock *locker.Lock, _ *fakeLease) { lock.Hold().MarkLost(errors.New("revoked")) },
		"Renew": func(lock *locker.Lock, server *fakeLease) {
			server.answer = refusing(locker.ErrNotHeld).answer
			_ = lock.Renew(context.Background(), 0)
		},
		"Renew of its Hold": func(lock *locker.Lock, server *fakeLease) {
			server.answer = refusing(locker.ErrNotHeld).answer
			_ = lock.Hold().Renew(context.Background())
		},
		"Release": func(lock *locker.Lock, _ *fakeLease) { _ = lock.Release(context.Background()) },
	}, func(t *testing.T, end func(lock *locker.Lock, server *fakeLease)) {
		free := make(chan struct{})
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Renewed: func(context.Context, locktrace.RenewedInfo) { <-free },
		})
		m := &fakeLease{}
		lock := minute(ctx, m)
		told := make(chan struct{})
		lock.AfterDone(func(error) { close(told) })
		work, cancel := lock.Context(t.Context())
		defer cancel()
		check.Must(t, lock.Hold().Renew(t.Context()))
		synctest.Wait() // Renewed blocks
		end(lock, m)
		synctest.Wait()
		if !check.Closed(told) || work.Err() == nil {
			t.Errorf("AfterDone was called: %v, its ctx has ended: %v; the lock's error is %v", check.Closed(told), work.Err(), lock.Err())
		}
		close(free)
		synctest.Wait()
		_ = lock.Release(t.Context())
	})
}

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// The end of a lock is known by the clock alone, without a packet.
func TestDone(t *testing.T) {
	t.Parallel()
	type test struct {
		ttl      time.Duration
		renewals int           // one every two seconds
		endless  bool          // renewed leases last for ever
		ends     time.Duration // 0: never
	}
	tests := map[string]test{
		"renewed":          {ttl: 3 * time.Second, renewals: 10, ends: 23 * time.Second},
		"never ends":       {renewals: 1},
		"renewed for ever": {ttl: 3 * time.Second, renewals: 1, endless: true},
	}
	for _, ttl := range []time.Duration{time.Millisecond, 999 * time.Millisecond, time.Second, 30 * time.Second, time.Hour + 1, 24 * 24 * time.Hour} {
		tests[ttl.String()] = test{ttl: ttl, ends: ttl}
	}
	check.EachInFakeTime(t, tests, func(t *testing.T, tt test) {
		l, start := &fakeLease{}, time.Now()
		if tt.endless {
			l = refusing(nil) // answers with a zero Deadline
		}
		lock := hold(t, l, tt.ttl)
		done := lock.Done()
		for range tt.renewals {
			check.Advance(2 * time.Second)
			check.Error(t, "Renew", lock.Renew(t.Context(), 0))
		}
		last := tt.ends - time.Since(start) - 1
		if tt.ends == 0 {
			last = 100 * 365 * 24 * time.Hour
		}
		check.Advance(last)
		if check.Closed(done) || lock.Err() != nil || len(l.asked()) != tt.renewals {
			t.Errorf("before its end: Err %v, asked %v", lock.Err(), l.asked())
		}
		if tt.ends == 0 {
			check.Error(t, "Release", lock.Release(t.Context()))
			if !check.Closed(done) {
				t.Error("Done is open after Release")
			}
			return
		}
		<-done
		if got := time.Since(start); got != tt.ends || !check.Closed(lock.Done()) {
			t.Errorf("Done closed after %v, want %v", got, tt.ends)
		}
		check.Error(t, "Err", lock.Err(), locker.ErrLost)
	})
}

func TestAfterDone(t *testing.T) {
	t.Parallel()
	type errs []error
	type test struct {
		end    func(*testing.T, *locker.Lock)
		answer error
		want   errs
	}
	check.EachInFakeTime(t, map[string]test{
		"release":         {func(t *testing.T, lock *locker.Lock) { _ = lock.Release(t.Context()) }, nil, errs{locker.ErrReleased}},
		"failed release":  {func(t *testing.T, lock *locker.Lock) { _ = lock.Release(t.Context()) }, io.EOF, errs{locker.ErrReleased}},
		"loss":            {func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }, nil, errs{locker.ErrLost, io.EOF}},
		"lease end":       {func(*testing.T, *locker.Lock) { check.Advance(time.Minute) }, nil, errs{locker.ErrLost}},
		"lost in renewal": {func(t *testing.T, lock *locker.Lock) { _ = lock.Renew(t.Context(), 0) }, locker.ErrNotHeld, errs{locker.ErrLost}},
	}, func(t *testing.T, tt test) {
		lock := hold(t, refusing(tt.answer), time.Minute)
		var told []string
		tell := func(who string) func(error) {
			return func(err error) {
				told = append(told, who)
				check.Error(t, who, err, tt.want...)
				check.Error(t, who+", Err", lock.Err(), tt.want...) // the lock may be used
				if !check.Closed(lock.Done()) {
					t.Errorf("%s: told before Done", who)
				}
			}
		}
		lock.AfterDone(tell("first"))
		stopped := lock.AfterDone(tell("stopped"))
		var stopLast func() bool
		lock.AfterDone(func(err error) {
			tell("second")(err)
			if stopLast() {
				t.Error("stop took back what is being told")
			}
			lock.AfterDone(tell("added at the end"))
		})
		stopLast = lock.AfterDone(tell("last"))
		if !stopped() || stopped() {
			t.Error("stop must take f back once")
		}
		tt.end(t, lock)
		lock.AfterDone(tell("after the end"))
		check.Advance(time.Hour)
		want := []string{"first", "second", "added at the end", "last", "after the end"}
		if !slices.Equal(told, want) {
			t.Errorf("told %v, want %v, once each", told, want)
		}
	})
}

// A callback that is removed leaves the others in their order, wherever it stood, and later ones come
// behind them.
func TestAfterDoneStops(t *testing.T) {
	t.Parallel()
	for removed := range 8 { // a set of bits
		lock := hold(t, &fakeLease{}, time.Minute)
		var told, want []int
		var stops []func() bool
		add := func(i int) { stops = append(stops, lock.AfterDone(func(error) { told = append(told, i) })) }
		for i := range 3 {
			add(i)
		}
		for i, stop := range stops {
			if removed&(1<<i) == 0 {
				want = append(want, i)
			} else if !stop() || stop() {
				t.Errorf("of %03b, stop %d must remove once", removed, i)
			}
		}
		add(3)
		check.OK(t, lock.Release(t.Context()))
		check.Equal(t, fmt.Sprintf("told without %03b", removed), fmt.Sprint(told), fmt.Sprint(append(want, 3)))
		for i, stop := range stops {
			check.Equal(t, fmt.Sprintf("of %03b, stop %d after the end", removed, i), stop(), false)
		}
	}
}

// A ctx of a lock costs the same, however many others of it live.
func BenchmarkContext(b *testing.B) {
	for _, others := range []int{0, 10_000} {
		b.Run(fmt.Sprint(others, " others"), func(b *testing.B) {
			lock := minute(b.Context(), &fakeLease{})
			for range others {
				_, cancel := lock.Context(b.Context())
				defer cancel()
			}
			for b.Loop() {
				_, cancel := lock.Context(b.Context())
				cancel()
			}
		})
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	type test struct {
		end   func(lock *locker.Lock, parent, cancel func())
		err   error // nil: the ctx lives
		cause []error
	}
	check.EachInFakeTime(t, map[string]test{
		"lives":    {func(*locker.Lock, func(), func()) {}, nil, nil},
		"release":  {func(lock *locker.Lock, _, _ func()) { _ = lock.Release(context.Background()) }, context.Canceled, []error{locker.ErrReleased}},
		"loss":     {func(lock *locker.Lock, _, _ func()) { lock.Hold().MarkLost(io.EOF) }, context.Canceled, []error{locker.ErrLost, io.EOF}},
		"deadline": {func(*locker.Lock, func(), func()) { check.Advance(time.Minute) }, context.Canceled, []error{locker.ErrLost}},
		"parent":   {func(_ *locker.Lock, parent, _ func()) { parent() }, context.Canceled, []error{io.ErrClosedPipe}},
		"cancel":   {func(_ *locker.Lock, _, cancel func()) { cancel() }, context.Canceled, []error{context.Canceled}},
	}, func(t *testing.T, tt test) {
		lock := hold(t, &fakeLease{}, time.Minute)
		parent, endParent := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
		defer endParent(nil)
		ctx, cancel := lock.Context(parent)
		defer cancel()
		tt.end(lock, func() { endParent(io.ErrClosedPipe) }, cancel)
		synctest.Wait()
		if !errors.Is(ctx.Err(), tt.err) || (ctx.Err() == nil) != (tt.err == nil) {
			t.Errorf("Err %v, want %v", ctx.Err(), tt.err)
		}
		check.Error(t, "Cause", context.Cause(ctx), tt.cause...)
		later, cancelLater := lock.Context(t.Context())
		defer cancelLater()
		check.Is(t, context.Cause(later), lock.Err())
		owner, _ := lease.OwnerFrom(ctx, "a")
		_, other := lease.OwnerFrom(ctx, "b")
		if ctx.Value(key{}) != "v" || owner != lock.Owner() || other {
			t.Errorf("value %v, owner %q, another name's: %v; want the parent's values and the owner for this name", ctx.Value(key{}), owner, other)
		}
	})
}

// A stopped callback or cancelled context does not stay in memory as long as its lock, nor a
// released or dropped lock as long as its timer.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	type big [64]byte
	for what, use := range map[string]func(*locker.Lock) weak.Pointer[big]{
		"a stopped callback": func(lock *locker.Lock) (p weak.Pointer[big]) {
			for range 3 {
				kept := new(big)
				p = weak.Make(kept)
				lock.AfterDone(func(error) { kept[0]++ })()
			}
			return p
		},
		"a cancelled context": func(lock *locker.Lock) weak.Pointer[big] {
			kept := new(big)
			_, cancel := lock.Context(context.WithValue(t.Context(), kept, kept))
			cancel()
			return weak.Make(kept)
		},
	} {
		lock := hold(t, &fakeLease{}, time.Hour)
		wantCollected(t, what, use(lock))
		runtime.KeepAlive(lock)
	}
	for what, use := range map[string]func(*locker.Lock){
		"a released lock": func(lock *locker.Lock) {
			lock.Done() // starts the timer
			check.Error(t, "Release", lock.Release(t.Context()))
		},
		"a lock that was dropped": func(lock *locker.Lock) { _, _ = lock.Err(), lock.Owner() },
	} {
		wantCollected(t, what, func() weak.Pointer[locker.Lock] {
			lock := hold(t, &fakeLease{}, time.Hour)
			use(lock)
			return weak.Make(lock)
		}())
	}
}

func wantCollected[T any](t *testing.T, what string, p weak.Pointer[T]) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); p.Value() != nil; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s is still in memory", what)
		}
		runtime.GC()
	}
}

var answersYes = leaseFunc(func(context.Context, lease.Op) (lease.Result, error) {
	return lease.Result{Deadline: time.Now().Add(time.Hour)}, nil
})

// letGo makes a Lock, calls use with it, and returns its Hold and the result of use.
//
//go:noinline
func letGo(ctx context.Context, use func(*locker.Lock) any) (lease.Hold, any) {
	lock := locker.NewLock(ctx, lease.HoldInfo{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Hour)}, answersYes)
	kept := use(lock)
	return lock.Hold(), kept
}

// awaitForgotten collects garbage until hold is reported as forgotten.
func awaitForgotten(t *testing.T, hold lease.Hold) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !hold.Forgotten(); runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("a Lock that nobody has is not reported as forgotten")
		}
	}
}

// An unreferenced Lock is forgotten, unless it is in use, has ended, or may have a waiter for its
// end.
func TestForgotten(t *testing.T) {
	t.Parallel()
	parent, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	type test struct {
		use       func(*locker.Lock) any
		forgotten bool
	}
	check.Each(t, map[string]test{
		"dropped":  {func(*locker.Lock) any { return nil }, true},
		"kept":     {func(l *locker.Lock) any { return l }, false},
		"ctx kept": {func(l *locker.Lock) any { ctx, _ := l.Context(parent); return ctx }, false},
		"ctx under it kept": {func(l *locker.Lock) any {
			ctx, _ := l.Context(parent)
			return context.WithoutCancel(context.WithValue(ctx, new(int), 1))
		}, false},
		"work runs under its ctx": {func(l *locker.Lock) any {
			ctx, _ := l.Context(context.WithoutCancel(parent))
			return context.AfterFunc(ctx, func() {})
		}, false},
		"cancel kept":        {func(l *locker.Lock) any { _, cancel := l.Context(parent); return cancel }, false},
		"ctx dropped":        {func(l *locker.Lock) any { _, _ = l.Context(parent); return nil }, true},
		"ctx cancelled":      {func(l *locker.Lock) any { _, cancel := l.Context(parent); cancel(); return nil }, true},
		"Done":               {func(l *locker.Lock) any { return l.Done() }, false},
		"AfterDone":          {func(l *locker.Lock) any { l.AfterDone(func(error) {}); return nil }, false},
		"AfterDone, stopped": {func(l *locker.Lock) any { l.AfterDone(func(error) {})(); return nil }, true},
		"Handle":             {func(l *locker.Lock) any { return l.Handle() }, false},
		"Hold":               {func(l *locker.Lock) any { return l.Hold() }, true},
		"asked and renewed":  {func(l *locker.Lock) any { return errors.Join(l.Err(), l.Renew(parent, 0), l.Hold().Renew(parent)) }, true},
		"released":           {func(l *locker.Lock) any { return l.Release(parent) }, false},
		"lost":               {func(l *locker.Lock) any { l.Hold().MarkLost(nil); return nil }, false},
	}, func(t *testing.T, tt test) {
		hold, kept := letGo(t.Context(), tt.use)
		other, _ := letGo(t.Context(), func(*locker.Lock) any { return nil })
		if hold.Forgotten() || other.Forgotten() {
			t.Error("the first call does not begin to observe, but reports")
		}
		awaitForgotten(t, other)
		if tt.forgotten {
			awaitForgotten(t, hold)
		}
		check.Equal(t, "Forgotten", hold.Forgotten(), tt.forgotten)
		runtime.KeepAlive(kept)
	})
}

// A forgotten Lock without renewals is reported once, at its Deadline, with that cause, and its ctx
// ends. A live one is reported as lost, without that cause.
func TestForgottenIsReported(t *testing.T) {
	t.Parallel()
	type test struct {
		collected time.Duration // time of the garbage collection
		want      bool
	}
	check.EachInFakeTime(t, map[string]test{
		"forgotten":                            {11 * time.Second, true},
		"forgotten, found out at the Deadline": {time.Hour - time.Second, true},
		"alive":                                {11 * time.Second, false},
	}, func(t *testing.T, tt test) {
		want := tt.want
		var reports atomic.Int32
		var last error
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Lost: func(_ context.Context, info locktrace.LostInfo) {
			last = info.Err
			reports.Add(1)
		}})
		hold, lock := letGo(ctx, func(l *locker.Lock) any {
			if want {
				return nil
			}
			return l
		})
		time.Sleep(tt.collected) //nolint:forbidigo // fake time
		runtime.GC()
		runtime.GC()
		time.Sleep(2 * time.Hour) //nolint:forbidigo // fake time
		synctest.Wait()
		if n := reports.Load(); n != 1 || !errors.Is(last, locker.ErrLost) || errors.Is(last, locker.ErrForgotten) != want {
			t.Errorf("reported %d times, last %v", n, last)
		}
		if hold.Err() != last { //nolint:errorlint // the same
			t.Errorf("Err is %v, reported was %v", hold.Err(), last)
		}
		if text := `holdfast: lock "a" was lost: its Deadline passed: the Lock was garbage-collected without a Release`; want && last.Error() != text {
			t.Errorf("the text is %q", last)
		}
		runtime.KeepAlive(lock)
	})
}

// The locks of AcquireAll are forgotten with their Locks.
func TestForgottenLocks(t *testing.T) {
	t.Parallel()
	l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		return locker.NewLock(ctx, lease.HoldInfo{Name: req.Name, Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Hour)}, answersYes), nil
	})
	var holds []lease.Hold
	func() {
		locks := locker.Must(locker.AcquireAll(t.Context(), l, []locker.Request{{Name: "a"}, {Name: "b"}}))
		for _, lock := range locks.All() {
			holds = append(holds, lock.Hold())
		}
		for _, hold := range holds {
			hold.Forgotten()
		}
		other, _ := letGo(t.Context(), func(*locker.Lock) any { return nil })
		awaitForgotten(t, other)
		for _, hold := range holds {
			if hold.Forgotten() {
				t.Error("a lock of AcquireAll is reported as forgotten while Locks is in use")
			}
		}
		runtime.KeepAlive(locks)
	}()
	for _, hold := range holds {
		awaitForgotten(t, hold)
	}
}

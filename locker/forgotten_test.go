package locker_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

var answersYes = leaseFunc(func(context.Context, lease.Op) (lease.Term, error) {
	return lease.Term{Deadline: time.Now().Add(time.Hour)}, nil
})

// letGo makes a Lock, calls use with it, and returns its Hold and what use returned.
//
//go:noinline
func letGo(ctx context.Context, use func(*locker.Lock) any) (lease.Hold, any) {
	lock := locker.NewLock(ctx, lease.Grant{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Hour)}, answersYes)
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

// A Lock that nobody has is forgotten. One that is in use, has ended, or whose end something may
// wait for, is not.
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

// A forgotten Lock that nothing renews is reported at its Deadline, once, with that cause. Its ctx
// ends then. One that is alive is reported as lost, without that cause.
func TestForgottenIsReported(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]bool{"forgotten": true, "alive": false}, func(t *testing.T, want bool) {
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
		time.Sleep(11 * time.Second) //nolint:forbidigo // fake time
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
		return locker.NewLock(ctx, lease.Grant{Name: req.Name, Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Hour)}, answersYes), nil
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

package locker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// The events of a lock are reported in order, however slow the callback of one is. Release does not
// wait for it.
func TestReportsInOrder(t *testing.T) {
	t.Parallel()
	renew := func(lock *locker.Lock) { _ = lock.Renew(context.Background(), 0) }
	type test struct {
		slow string // the callback that blocks
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
		go tt.lose(lock)
		check.Advance(2 * time.Hour)
		synctest.Wait()
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

// A callback may release its own lock.
func TestReleaseInLost(t *testing.T) {
	t.Parallel()
	var events diary
	var lock *locker.Lock
	ctx := locktrace.With(t.Context(), &locktrace.Trace{
		Lost: func(context.Context, locktrace.LostInfo) {
			_ = lock.Release(context.Background())
			events.notef("lost")
		},
		Released: func(context.Context, locktrace.ReleasedInfo) { events.notef("released") },
	})
	lock = locker.NewLock(ctx, lease.Grant{Name: "a", Token: "t"}, &fakeLease{})
	lock.Hold().MarkLost(nil)
	if got, want := events.read(), []string{"lost", "released"}; !slices.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

// TestAfterDoneBesideABlockedCallback checks that a callback that blocks does not keep AfterDone
// from reporting the end of the lock, however it ends.
func TestAfterDoneBesideABlockedCallback(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(lock *locker.Lock, ended *answering){
		"Deadline": func(*locker.Lock, *answering) { check.Advance(time.Minute) },
		"MarkLost": func(lock *locker.Lock, _ *answering) { lock.Hold().MarkLost(errors.New("revoked")) },
		"Renew": func(lock *locker.Lock, ended *answering) {
			ended.err = locker.ErrNotHeld
			_ = lock.Renew(context.Background(), 0)
		},
		"Release": func(lock *locker.Lock, _ *answering) { _ = lock.Release(context.Background()) },
	}, func(t *testing.T, end func(lock *locker.Lock, ended *answering)) {
		free := make(chan struct{})
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Renewed: func(context.Context, locktrace.RenewedInfo) { <-free },
		})
		m := &answering{}
		lock := minute(ctx, m)
		told := make(chan struct{})
		lock.AfterDone(func(error) { close(told) })
		check.Must(t, lock.Hold().Renew(t.Context()))
		synctest.Wait() // Renewed blocks
		end(lock, m)
		synctest.Wait()
		if !check.Closed(told) {
			t.Errorf("AfterDone was not called; the lock's error is %v", lock.Err())
		}
		close(free)
		synctest.Wait()
		_ = lock.Release(t.Context())
	})
}

package lockertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/named"
)

func TestSemaphore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.NewSemaphore(4)
		if got := inspect(t, l, "a"); got != (locker.State{Permits: 4, Free: 4}) {
			t.Errorf("free: %+v", got)
		}
		one := acquire(t, l, locker.Request{Name: "a", Owner: "one", TTL: time.Minute, Fenced: true})
		two := acquire(t, l, locker.Request{Name: "a", Owner: "two", TTL: time.Hour, Permits: 2, Fenced: true})
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a", Permits: 2})
		var held *locker.ContentionError
		if !errors.As(err, &held) || held.Owner != "one" || held.Left != time.Minute {
			t.Errorf("too few permits: %v, want a refusal by the one whose lease ends first", err)
		}
		want := locker.State{Held: true, Owner: "two", Holds: 2, Left: time.Hour, Permits: 4, Free: 1}
		if got := inspect(t, l, "a"); got != want {
			t.Errorf("held: %+v, want %+v", got, want)
		}
		if two.Fence() <= one.Fence() {
			t.Errorf("fencing tokens %d, %d; want that each hold has a higher one", one.Fence(), two.Fence())
		}
		resumed, err := locker.Resume(t.Context(), l, two.Handle())
		wantError(t, "Resume", err)
		if got := inspect(t, l, "a").Free; got != 1 {
			t.Errorf("%d free after a resume, want 1", got)
		}
		advance(time.Minute)
		wantError(t, "Err", one.Err(), locker.ErrLost)
		release(t, acquire(t, l, locker.Request{Name: "a", Permits: 2}))
		release(t, resumed)
		release(t, acquire(t, l, locker.Request{Name: "a", Permits: 4}))
	})
}

func TestSemaphoreRefuses(t *testing.T) {
	t.Parallel()
	l := lockertest.NewSemaphore(2)
	lock := acquire(t, l, locker.Request{Name: "b"})
	for what, tt := range map[string]struct {
		req  locker.Request
		want error
	}{
		"more permits than there are": {locker.Request{Name: "a", Permits: 3}, locker.ErrInvalid},
		"the shared mode":             {locker.Request{Name: "a", Mode: locker.Shared}, errors.ErrUnsupported},
		"a resume with other permits": {locker.Request{Name: "b", Permits: 2, Resume: lock.Handle()}, locker.ErrInvalid},
	} {
		_, err := l.Acquire(t.Context(), tt.req)
		wantError(t, what, err, tt.want)
	}
	wantError(t, "Downgrade", lock.Downgrade(t.Context()), errors.ErrUnsupported)
	panics(t, func() { lockertest.NewSemaphore(0) })
}

// Where one holds at a time, a semaphore of several permits is refused, as that of the strategy is.
func TestSemaphoreIsKnown(t *testing.T) {
	t.Parallel()
	for permits, ok := range map[int]bool{1: true, 2: false} {
		l := lockertest.NewSemaphore(permits)
		if _, err := named.New(l, locker.Request{}); (err == nil) != ok {
			t.Errorf("named.New of %d permits: %v", permits, err)
		}
		if _, err := leader.New(l, leader.Config{Name: "a", Lead: lead}); (err == nil) != ok {
			t.Errorf("leader.New of %d permits: %v", permits, err)
		}
	}
	if lockertest.New().Permits() != 0 {
		t.Error("a lock says that it is a semaphore")
	}
}

func lead(context.Context, int64) error { return nil }

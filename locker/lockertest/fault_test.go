package lockertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

var errFirst = errors.New("first failure")

func TestFailNil(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	for _, fail := range []func(error){l.FailAcquire, l.FailRenew, l.FailRelease} {
		check.Panics(t, nil, func() { fail(nil) })
	}
}

func TestExpire(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	check.Equal(t, "Expire of a free name", l.Expire("a"), false)
	req := locker.Request{Name: "a", Mode: locker.Shared}
	first, second, other := acquire(t, l, req), acquire(t, l, req), acquire(t, l, locker.Request{Name: "b"})
	told := make(chan error, 1)
	first.AfterDone(func(err error) {
		inspect(t, l, "a") // a callback may use the Locker
		told <- err
	})
	check.Equal(t, "Expire", l.Expire("a"), true)
	check.Error(t, "AfterDone", <-told, locker.ErrLost)
	for _, lock := range []*locker.Lock{first, second} {
		<-lock.Done()
		check.Error(t, "Err", lock.Err(), locker.ErrLost)
		check.Error(t, "Renew", lock.Renew(t.Context(), 0), locker.ErrLost)
		check.Error(t, "Release", lock.Release(t.Context()), locker.ErrLost)
	}
	check.Error(t, "a lock of another name", other.Err())
	acquire(t, l, locker.Request{Name: "a"})
}

// A loss between the successful attempt and Acquire's return is reported.
func TestExpireDuringAcquire(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	ctx := locktrace.With(t.Context(), &locktrace.Trace{
		Acquired: func(context.Context, locktrace.AcquiredInfo) { l.Expire("a") },
	})
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "a"}))
	check.Error(t, "Err", lock.Err(), locker.ErrLost)
}

func TestForget(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	check.Equal(t, "Forget of a free name", l.Forget("a"), false)
	lock := acquire(t, l, locker.Request{Name: "a", Fenced: true})
	check.Equal(t, "Forget", l.Forget("a"), true)
	check.Error(t, "what the holder is told", lock.Err())
	next := acquire(t, l, locker.Request{Name: "a", Fenced: true})
	check.Error(t, "Renew", lock.Renew(t.Context(), 0), locker.ErrLost)
	check.Error(t, "Release", lock.Release(t.Context()), locker.ErrLost)
	if next.Err() != nil || !inspect(t, l, "a").Held || next.Fence() <= lock.Fence() {
		t.Errorf("the next holder has %v, want it untouched, with a fence above %d", next, lock.Fence())
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	l.FailAcquire(errFirst)
	other := l.Hold(locker.Request{Name: "a", Owner: "other", Note: "host 2"})
	_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
	check.Error(t, "Acquire", err, errFirst) // Hold left it
	_, err = l.Acquire(t.Context(), locker.Request{Name: "a"})
	var ce *locker.ContentionError
	if !errors.As(err, &ce) || ce.Owner != "other" || ce.Note != "host 2" {
		t.Errorf("Acquire: %v, want a refusal by other", err)
	}
	check.Panics(t, nil, func() { l.Hold(locker.Request{Name: "a"}) })
	check.Panics(t, nil, func() { l.Hold(locker.Request{}) })
	check.Panics(t, nil, func() { l.Hold(locker.Request{Name: "a", Resume: other.Handle()}) })
	release(t, other)
	acquire(t, l, locker.Request{Name: "a"})
}

// An undone acquire leaves nothing. An undone resume leaves the hold to its former holder, with its
// lease of that time. No resume shortens a lease.
func TestUndo(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		old := acquire(t, l, locker.Request{Name: "a", TTL: time.Minute})
		undo := func(lock *locker.Lock) { // as a quorum does when its other nodes failed
			_, err := lock.Hold().Lease().Do(t.Context(), lease.Op{Kind: lease.OpUndo})
			check.Error(t, "undo", err)
		}
		undo(acquire(t, l, locker.Request{Name: "a", TTL: time.Hour, Resume: old.Handle()}))
		check.Error(t, "renewal by the old one", old.Renew(t.Context(), 0))
		acquire(t, l, locker.Request{Name: "a", TTL: time.Minute, Resume: old.Handle()})
		check.Equal(t, "left", inspect(t, l, "a").Left, time.Hour)
		undo(acquire(t, l, locker.Request{Name: "b"}))
		check.Equal(t, "held, after an acquire was undone", inspect(t, l, "b").Held, false)
	})
}

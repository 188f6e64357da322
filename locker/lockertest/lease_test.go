package lockertest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		start := time.Now()
		lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Second})
		if want := start.Add(time.Second); !lock.Deadline().Equal(want) {
			t.Errorf("Deadline %v, want %v", lock.Deadline(), want)
		}
		advance(time.Second - 1)
		if err := lock.Err(); err != nil {
			t.Errorf("Err just before the Deadline: %v", err)
		}
		if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); !errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("Acquire just before the Deadline: %v, want ErrNotAcquired", err)
		}
		<-lock.Done()
		if got := time.Since(start); got != time.Second {
			t.Errorf("Done closed after %v, want 1s", got)
		}
		wantError(t, "Renew after the end", lock.Renew(t.Context(), time.Hour), locker.ErrLost)
		acquire(t, l, locker.Request{Name: "a"})
		wantError(t, "Release after the end", lock.Release(t.Context()), locker.ErrLost)
		if !inspect(t, l, "a").Held {
			t.Error("the late release took away the next holder's lock")
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Minute})
		steps := []struct {
			wait, ttl, left time.Duration
		}{
			{0, time.Second, time.Minute}, // never shortens
			{10 * time.Second, 0, time.Minute},
			{0, time.Hour, time.Hour},
			{time.Minute, 0, 59 * time.Minute},
			{0, time.Hour + time.Microsecond, time.Hour}, // whole milliseconds
		}
		for _, s := range steps {
			advance(s.wait)
			if err := lock.Renew(t.Context(), s.ttl); err != nil {
				t.Fatalf("Renew(%v): %v", s.ttl, err)
			}
			if left := time.Until(lock.Deadline()); left != s.left {
				t.Errorf("after Renew(%v): %v left by the Lock, want %v", s.ttl, left, s.left)
			}
			if left := inspect(t, l, "a").Left; left != s.left {
				t.Errorf("after Renew(%v): %v left by Inspect, want %v", s.ttl, left, s.left)
			}
		}
	})
}

func TestWholeMilliseconds(t *testing.T) {
	t.Parallel()
	lock := acquire(t, lockertest.New(), locker.Request{Name: "a", TTL: 3999 * time.Microsecond})
	if got := lock.TTL(); got != 3*time.Millisecond {
		t.Errorf("TTL %v, want 3ms", got)
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a", Owner: "w", Fenced: true})
	if err := lock.Downgrade(t.Context()); err != nil || lock.Mode() != locker.Shared {
		t.Fatalf("Downgrade: %v, mode %v", err, lock.Mode())
	}
	reader := acquire(t, l, locker.Request{Name: "a", Mode: locker.Shared, Owner: "r"})
	err := lock.Upgrade(t.Context())
	wantOp(t, err, "upgrade")
	var ce *locker.ContentionError
	if !errors.As(err, &ce) || ce.Owner != "r" || lock.Mode() != locker.Shared {
		t.Errorf("Upgrade beside a reader: %v, mode %v; want a refusal by r", err, lock.Mode())
	}
	release(t, reader)
	if err := lock.Upgrade(t.Context()); err != nil || lock.Mode() != locker.Exclusive {
		t.Errorf("Upgrade alone: %v, mode %v", err, lock.Mode())
	}
	if _, err := l.Acquire(t.Context(), locker.Request{Name: "a", Mode: locker.Shared}); !errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("a reader beside the upgraded lock: %v, want ErrNotAcquired", err)
	}
	if lock.Fence() != 2 {
		t.Errorf("fence %d after an upgrade, want 2", lock.Fence())
	}
}

func TestFences(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var last int64
	for range 3 {
		lock := acquire(t, l, locker.Request{Name: "a", Fenced: true})
		if lock.Fence() <= last {
			t.Fatalf("fence %d after %d", lock.Fence(), last)
		}
		last = lock.Fence()
		l.Expire("a") // neither loss nor release may take the counter back
	}
	if plain := acquire(t, l, locker.Request{Name: "a"}); plain.Fence() != 0 {
		t.Errorf("fence %d where none was asked for", plain.Fence())
	}
	if other := acquire(t, l, locker.Request{Name: "b", Fenced: true}); other.Fence() != 1 {
		t.Errorf("fence %d of another name, want its own 1", other.Fence())
	}
}

func TestRaiseFence(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var inner lease.Lease
	grab := func(lock *locker.Lock) *locker.Lock {
		lock.Hold().Wrap(func(in lease.Lease) lease.Lease { inner = in; return in })
		return lock
	}
	lock := grab(acquire(t, l, locker.Request{Name: "a", Fenced: true}))
	raise := func(to int64) (int64, error) {
		term, err := inner.Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: to})
		return term.Fence, err
	}
	for _, tt := range []struct{ to, want int64 }{{7, 7}, {5, 7}} {
		if got, err := raise(tt.to); err != nil || got != tt.want {
			t.Errorf("raise to %d: %d, %v; want %d", tt.to, got, err, tt.want)
		}
	}
	release(t, lock)
	if _, err := raise(9); !errors.Is(err, locker.ErrNotHeld) {
		t.Errorf("raise after the release: %v, want ErrNotHeld", err)
	}
	if next := acquire(t, l, locker.Request{Name: "a", Fenced: true}); next.Fence() != 8 {
		t.Errorf("fence %d after one of 7, want 8", next.Fence())
	}
	grab(acquire(t, l, locker.Request{Name: "b"}))
	if _, err := raise(2); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("raise where there is no fence: %v, want ErrUnsupported", err)
	}
	if _, err := inner.Do(t.Context(), lease.Op{Kind: 99}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unknown operation: %v, want ErrUnsupported", err)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		first := acquire(t, l, locker.Request{Name: "a", Owner: "w", Note: "n", TTL: time.Minute, Fenced: true})
		h, err := locker.ParseHandle(first.Handle().Encode())
		if err != nil {
			t.Fatalf("ParseHandle: %v", err)
		}
		advance(40 * time.Second)
		second, err := locker.Resume(t.Context(), l, h)
		if err != nil {
			t.Fatalf("Resume: %v", err)
		}
		if second.Owner() != "w" || second.Fence() <= first.Fence() || time.Until(second.Deadline()) != time.Minute {
			t.Errorf("resumed: %v until %v, want owner w, a new fence, a minute", second, second.Deadline())
		}
		if state := inspect(t, l, "a"); state.Holds != 1 || state.Owner != "w" || state.Note != "n" {
			t.Errorf("state %+v, want the one hold of w with its note", state)
		}
		wantError(t, "Renew of the first Lock", first.Renew(t.Context(), 0), locker.ErrLost, locker.ErrNotHeld)
		wantError(t, "Release of the first Lock", first.Release(t.Context()), locker.ErrLost)
		_, err = locker.Resume(t.Context(), l, h)
		wantError(t, "Resume with the used handle", err, locker.ErrNotHeld)
		wantOp(t, err, "resume")
		if err := second.Renew(t.Context(), 0); err != nil {
			t.Errorf("Renew of the resumed Lock: %v", err)
		}
		release(t, second)
		_, err = locker.Resume(t.Context(), l, second.Handle())
		wantError(t, "Resume of what was released", err, locker.ErrNotHeld)
	})
}

func TestResumeKeeps(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Hour})
	h := lock.Handle()
	again, err := l.Acquire(t.Context(), locker.Request{Name: "a", TTL: time.Second, Resume: h})
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if again.Owner() != lock.Owner() || again.Fence() != 0 {
		t.Errorf("resumed %v, want the random owner %s and no fence", again, lock.Owner())
	}
	if left := time.Until(again.Deadline()); left < 50*time.Minute {
		t.Errorf("%v left, want the hour: a resume shortens no lease", left)
	}
}

// A handle from before the downgrade must not make two locks of different modes out of one hold.
func TestResumeOfAnotherMode(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a"})
	before := lock.Handle()
	if err := lock.Downgrade(t.Context()); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	_, err := locker.Resume(t.Context(), l, before)
	wantError(t, "Resume with the mode from before", err, locker.ErrNotHeld)
	if again, err := locker.Resume(t.Context(), l, lock.Handle()); err != nil || again.Mode() != locker.Shared {
		t.Errorf("Resume with the mode as it is: %v, %v", again, err)
	}
}

package named_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/named"
)

func newMutex(l locker.Locker, req locker.Request) *named.Mutex {
	return locker.Must(named.New(l, req))
}

// want demands that err matches all of targets, or is nil if there are none.
func want(t *testing.T, what string, err error, targets ...error) {
	t.Helper()
	check.Error(t, what, err, targets...)
	if oe, ok := errors.AsType[*locker.OpError](err); err != nil && (!ok || oe.Name != "a") {
		t.Errorf("%s: %v, want an OpError that names the lock", what, err)
	}
}

// wantKept demands these numbers of names in use and of lost locks waiting for their Unlock.
func wantKept(t *testing.T, s *named.Mutex, names, lost int) {
	t.Helper()
	if n, l := s.Kept(); n != names || l != lost {
		t.Errorf("%d names in use and %d lost locks, want %d and %d", n, l, names, lost)
	}
}

func held(t *testing.T, l *lockertest.Locker, name string) bool {
	t.Helper()
	state, err := l.Inspect(t.Context(), name)
	want(t, "Inspect", err)
	return state.Held
}

func TestTryLock(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	s := newMutex(l, locker.Request{})
	try := func(want bool) {
		t.Helper()
		if ok, err := s.TryLock(t.Context(), "a"); ok != want || err != nil {
			t.Errorf("TryLock: %v, %v; want %v", ok, err, want)
		}
	}
	try(true)
	try(false) // held here
	want(t, "Unlock", s.Unlock(t.Context(), "a"))
	other := l.Hold(locker.Request{Name: "a"})
	try(false) // held elsewhere
	want(t, "Unlock of what another process holds", s.Unlock(t.Context(), "a"), locker.ErrNotHeld)
	want(t, "Release", other.Release(t.Context()))
	try(true)

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	ok, err := s.TryLock(cancelled, "a")
	want(t, "TryLock under a cancelled ctx", err, locker.ErrNotAcquired)
	want(t, "Unlock under a cancelled ctx", s.Unlock(cancelled, "a"))
	l.FailAcquire(&locker.OpError{Op: "acquire", Name: "a", Err: io.EOF})
	failed, outage := s.TryLock(t.Context(), "a")
	want(t, "TryLock in an outage", outage, io.EOF)
	if ok || failed {
		t.Error("TryLock says that it holds the lock beside an error")
	}
	wantKept(t, s, 0, 0)
}

// Goroutines that lock one name exclude and wait for each other, over a Locker that does not wait.
func TestLockWaitsForItsProcess(t *testing.T) {
	t.Parallel()
	s := newMutex(lockertest.New(), locker.Request{})
	inside := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				want(t, "Lock", s.Lock(t.Context(), "a"))
				if inside++; inside != 1 { // the race detector sees a second one, too
					t.Errorf("%d inside", inside)
				}
				inside--
				want(t, "Unlock", s.Unlock(t.Context(), "a"))
			}
		})
	}
	wg.Wait()
	wantKept(t, s, 0, 0)
}

// The ends of a wait for another caller of this process.
func TestLockGivesUp(t *testing.T) {
	t.Parallel()
	type test struct {
		maxWait, deadline time.Duration
		want              []error
	}
	check.EachInFakeTime(t, map[string]test{
		"MaxWait": {time.Second, time.Hour, []error{locker.ErrNotAcquired, locker.ErrMaxWait}},
		"ctx":     {0, time.Second, []error{locker.ErrNotAcquired, context.DeadlineExceeded}},
	}, func(t *testing.T, tt test) {
		s := newMutex(lockertest.New(), locker.Request{TTL: time.Hour, MaxWait: tt.maxWait})
		want(t, "Lock", s.Lock(t.Context(), "a"))
		ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
		defer cancel()
		start := time.Now()
		want(t, "a second Lock", s.Lock(ctx, "a"), tt.want...)
		check.Took(t, "a second Lock", start, time.Second)
		want(t, "Unlock", s.Unlock(t.Context(), "a"))
		wantKept(t, s, 0, 0)
	})
}

// The rest of MaxWait after the wait in this process bounds the acquire.
func TestMaxWaitIsOne(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var got time.Duration
		l := lockertest.New()
		s := newMutex(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			got = req.MaxWait
			return l.Acquire(ctx, req)
		}), locker.Request{MaxWait: time.Second})
		want(t, "Lock", s.Lock(t.Context(), "a"))
		time.AfterFunc(700*time.Millisecond, func() { want(t, "Unlock", s.Unlock(t.Context(), "a")) })
		want(t, "a second Lock", s.Lock(t.Context(), "a"))
		check.Equal(t, "MaxWait of the acquire", got, 300*time.Millisecond)
		want(t, "Unlock", s.Unlock(t.Context(), "a"))
	})
}

// A lost lock frees its name. Its Unlock reports the loss, and leaves the next lock alone.
func TestLost(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		s := newMutex(l, locker.Request{TTL: time.Second})
		want(t, "Lock", s.Lock(t.Context(), "a"))
		waited := make(chan error, 1)
		go func() { waited <- s.Lock(t.Context(), "a") }()
		start := time.Now()
		want(t, "a Lock that waits", <-waited)
		check.Took(t, "a Lock that waits for the loss of the first", start, time.Second)
		wantKept(t, s, 1, 1)
		want(t, "Unlock of the lost lock", s.Unlock(t.Context(), "a"), locker.ErrLost)
		if !held(t, l, "a") {
			t.Error("it released the next lock")
		}
		wantKept(t, s, 1, 0)
		want(t, "Unlock", s.Unlock(t.Context(), "a"))
		wantKept(t, s, 0, 0)
	})
}

// Middleware may change the names of the locks. Names of the Mutex stay those given to Lock.
func TestLostUnderAnotherName(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	s := newMutex(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		req.Name = "tenant:" + req.Name
		return l.Acquire(ctx, req)
	}), locker.Request{})
	want(t, "Lock", s.Lock(t.Context(), "a"))
	l.Expire("tenant:a")
	want(t, "Lock after the loss", s.Lock(t.Context(), "a"))
	check.Error(t, "Unlock of the lost lock", s.Unlock(t.Context(), "a"), locker.ErrLost)
	if !held(t, l, "tenant:a") {
		t.Error("it released the next lock")
	}
	want(t, "Unlock", s.Unlock(t.Context(), "a"))
	wantKept(t, s, 0, 0)
}

func TestOwners(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	s := newMutex(l, locker.Request{})
	ann, bob := locker.WithOwner(t.Context(), "ann"), locker.WithOwner(t.Context(), "bob")
	want(t, "Lock", s.Lock(ann, "a"))
	want(t, "Unlock by another owner", s.Unlock(bob, "a"), locker.ErrNotHeld)
	if !held(t, l, "a") {
		t.Fatal("another owner released it")
	}
	want(t, "Unlock by its owner", s.Unlock(ann, "a"))

	want(t, "Lock", s.Lock(ann, "a"))
	l.Expire("a")
	want(t, "Lock by another owner", s.Lock(bob, "a"))
	want(t, "Unlock by the next owner", s.Unlock(bob, "a")) // bob's, although ann's Unlock is due
	wantKept(t, s, 0, 1)
	want(t, "Lock", s.Lock(bob, "a"))
	want(t, "Unlock by the owner that lost it", s.Unlock(ann, "a"), locker.ErrLost)
	want(t, "Unlock by anybody", s.Unlock(t.Context(), "a"))
	wantKept(t, s, 0, 0)
}

// A failed release is reported, and the name can be locked again.
func TestReleaseFails(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	s := newMutex(l, locker.Request{})
	want(t, "Lock", s.Lock(t.Context(), "a"))
	l.FailRelease(locker.ErrUnknownOutcome)
	want(t, "Unlock", s.Unlock(t.Context(), "a"), locker.ErrUnknownOutcome)
	wantKept(t, s, 0, 0)
	l.Forget("a")
	want(t, "Lock", s.Lock(t.Context(), "a"))
	want(t, "Unlock", s.Unlock(t.Context(), "a"))
}

func TestPanicFreesTheName(t *testing.T) {
	t.Parallel()
	s := newMutex(locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { panic("the Locker's") }), locker.Request{})
	func() {
		defer func() { _ = recover() }()
		_ = s.Lock(t.Context(), "a")
	}()
	wantKept(t, s, 0, 0)
}

// However many locks are lost and never unlocked, the memory for them stays bounded.
func TestBounded(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		l := lockertest.New()
		s := newMutex(l, locker.Request{})
		for i := range named.MaxLost + 10 {
			name := fmt.Sprint("a", i)
			check.Must(t, s.Lock(t.Context(), name))
			l.Expire(name)
			synctest.Wait()
		}
		wantKept(t, s, 0, named.MaxLost)
		if err := s.Unlock(t.Context(), "a9"); !errors.Is(err, locker.ErrNotHeld) || errors.Is(err, locker.ErrLost) {
			t.Errorf("Unlock of a loss that was forgotten: %v, want ErrNotHeld", err)
		}
		check.Error(t, "Unlock of a loss that is remembered", s.Unlock(t.Context(), "a10"), locker.ErrLost)
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	for name, tt := range map[string]struct {
		l   locker.Locker
		req locker.Request
	}{
		"locker":    {nil, locker.Request{}},
		"semaphore": {lockertest.NewSemaphore(2), locker.Request{}},
		"name":      {l, locker.Request{Name: "a"}},
		"mode":      {l, locker.Request{Mode: locker.Shared}},
		"TTL":       {l, locker.Request{TTL: 1}},
		"resume":    {l, locker.Request{Resume: locker.NewLock(context.Background(), lease.HoldInfo{Name: "a", Token: "t"}, nil).Handle()}},
	} {
		s, err := named.New(tt.l, tt.req)
		if ie, ok := errors.AsType[*locker.InvalidError](err); !ok || s != nil || ie.What == "" {
			t.Errorf("%s: %v, %v; want an InvalidError", name, s, err)
		}
	}
	s := newMutex(lockertest.NewSemaphore(1), locker.Request{})
	for name, err := range map[string]error{
		"Lock without ctx":    s.Lock(nil, "a"),   //nolint:staticcheck // nil on purpose
		"Unlock without ctx":  s.Unlock(nil, "a"), //nolint:staticcheck // nil on purpose
		"Lock without a name": s.Lock(t.Context(), ""),
	} {
		check.Error(t, name, err, locker.ErrInvalid)
	}
	wantKept(t, s, 0, 0)
}

package retry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// reentrant is a reentrant strategy. owner holds its lock; "": nobody.
type reentrant struct {
	*server

	state sync.Mutex
	owner string
	down  error // the error of every call; nil: the server answers
}

func (r *reentrant) set(owner string, down error) {
	r.state.Lock()
	defer r.state.Unlock()
	r.owner, r.down = owner, down
}

func (*reentrant) Traits() lease.Traits { return lease.Traits{Reentrant: true} }

// reentering is a Locker that reports itself as reentrant.
type reentering struct{ locker.Locker }

func (reentering) Traits() lease.Traits { return lease.Traits{Reentrant: true} }

func newReentrant(s *server, owner string) *reentrant {
	r := &reentrant{server: s, owner: owner}
	s.noPubSub, s.reenters = true, true
	s.answer = func(_ int, req locker.Request) error {
		r.state.Lock()
		defer r.state.Unlock()
		switch {
		case r.down != nil:
			return r.down
		case r.owner != "" && r.owner != req.Owner:
			return &locker.ContentionError{Name: req.Name, Owner: r.owner}
		}
		return nil
	}
	return r
}

// After an error, a nested acquire tries again as soon as the server names its owner as the holder.
func TestOwnerAsksUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for what, err := range map[string]error{
		"pool exhausted": driver.NotSent(errCut), "unknown outcome": errUnknown, "server away": errCut, "LOADING": reply("LOADING it"),
	} {
		for _, wait := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(what, ", MaxWait ", wait), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *server) {
					r := newReentrant(s, "me")
					l := wrap(t, r, retry.Config{Policy: constant(100 * ms)})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s.begin(ctx, l, locker.Request{Owner: "rival"})
					r.set("me", err)
					nested := s.begin(t.Context(), l, locker.Request{Owner: "me", MaxWait: wait})
					check.Advance(1050 * ms)
					if nested.done {
						t.Fatalf("returned %v while the server was away", nested.err)
					}
					r.set("me", nil)
					elapse(time.Second)
					nested.wantLock(t, 1100*ms)
				})
			})
		}
	}
}

// An owner may acquire the lock while another request of it waits. The waiting request learns of it
// from refusals of those ahead, or from the acquire in this process, and overtakes them.
func TestOwnerComesToHold(t *testing.T) {
	type test struct {
		how func(t *testing.T, s *server, l locker.Locker, r *reentrant)
		at  time.Duration
	}
	bubbles(t, map[string]test{
		"in another process": {func(_ *testing.T, _ *server, _ locker.Locker, r *reentrant) { r.set("me", nil) }, 2 * time.Second},
		"without queueing": {func(t *testing.T, s *server, l locker.Locker, r *reentrant) {
			t.Helper()
			r.set("me", nil)
			s.begin(t.Context(), l, locker.Request{Owner: "me", NoWait: true}).wantLock(t, time.Second)
		}, time.Second},
	}, func(t *testing.T, s *server, tt test) {
		r := newReentrant(s, "other")
		l := wrap(t, r, retry.Config{Policy: constant(2 * time.Second)})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.begin(ctx, l, locker.Request{Owner: "rival"})
		mine := s.begin(t.Context(), l, locker.Request{Owner: "me"})
		check.Advance(time.Second)
		tt.how(t, s, l, r)
		elapse(5 * time.Second)
		mine.wantLock(t, tt.at)
	})
}

// An owner may acquire the lock elsewhere and then again here, where the first waiter asks rarely.
func TestOwnerHoldsElsewhere(t *testing.T) {
	bubbles(t, map[string]time.Duration{"long ago": 10 * time.Second, "just now": 10 * ms, "before the answer": 0}, func(t *testing.T, s *server, after time.Duration) {
		r := newReentrant(s, "other")
		s.latency = ms
		l := wrap(t, r, retry.Config{Policy: constant(time.Hour)})
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{Owner: "rival"})
		elapse(after)
		for range 10 {
			s.begin(ctx, l, locker.Request{Owner: "another"})
		}
		elapse(10 * ms)
		r.set("me", nil)
		mine := s.begin(t.Context(), l, locker.Request{Owner: "me"})
		check.Advance(300 * ms)
		if mine.lock == nil {
			t.Errorf("Acquire: returned %v, %v; want a lock", mine.done, mine.err)
		}
		if got := len(s.times()); got > 5 {
			t.Errorf("%d attempts, want at most 5", got)
		}
		cancel()
	})
}

// Only the holder's own requests try before their turn; in an outage the first waiter asks for
// them.
func TestEarlyAttemptsAreFew(t *testing.T) {
	const n = 2000
	type test struct {
		owner  func(i int) string
		holder string
		down   bool
		most   int // attempts in 10 s
	}
	me, many := func(int) string { return "me" }, func(i int) string { return fmt.Sprint("owner ", i) }
	bubbles(t, map[string]test{
		"of one owner":                  {me, "other", false, 80},
		"of many owners":                {many, "other", false, 80},
		"of many owners, in an outage":  {many, "other", true, 80},
		"of the holder, in an outage":   {me, "me", true, n + 160},
		"of many and one, in an outage": {many, "owner 7", true, 80},
	}, func(t *testing.T, s *server, tt test) {
		r := newReentrant(s, tt.holder)
		s.latency = ms
		l := wrap(t, r, retry.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{Owner: "rival"})
		if tt.down {
			r.set(tt.holder, errCut)
		}
		for i := range n {
			go func() { _, _ = l.Acquire(ctx, locker.Request{Name: name, Owner: tt.owner(i)}) }()
		}
		check.Advance(10 * time.Second)
		if got := len(s.times()); got > tt.most {
			t.Errorf("%d attempts in 10 s, want at most %d", got, tt.most)
		}
		cancel()
	})
}

// An unanswered attempt does not end as "held by another" after another request of its owner has
// acquired the lock.
func TestOwnerIsNotRefusedByItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		r := newReentrant(s, "me")
		l := wrap(t, reentering{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if req.Note == "unanswered" {
				<-ctx.Done()
				return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
			}
			return r.Acquire(ctx, req)
		})}, retry.Config{Policy: constant(100 * ms)})
		unanswered := s.begin(t.Context(), l, locker.Request{Owner: "me", Note: "unanswered", MaxWait: 50 * ms})
		elapse(10 * ms)
		s.begin(t.Context(), l, locker.Request{Owner: "me", NoWait: true}).mustLock(t)
		check.Advance(100 * ms)
		match(t, unanswered.err, []error{locker.ErrUnknownOutcome, locker.ErrMaxWait}, []error{locker.ErrNotAcquired})
	})
}

// A request does not end as "held by another" behind another request of its own owner: that one may
// have acquired the lock.
func TestOwnerIsNotRefusedBehindItself(t *testing.T) {
	bubbles(t, map[string]string{"me": "me", "rival": "rival"}, func(t *testing.T, s *server, ahead string) {
		l := wrap(t, reentering{locker.Func(func(ctx context.Context, _ locker.Request) (*locker.Lock, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		})}, retry.Config{Policy: constant(100 * ms)})
		s.begin(t.Context(), l, locker.Request{Owner: ahead, MaxWait: 200 * ms})
		elapse(10 * ms)
		behind := s.begin(t.Context(), l, locker.Request{Owner: "me", MaxWait: 50 * ms})
		check.Advance(300 * ms)
		if refused := errors.Is(behind.err, locker.ErrNotAcquired); refused != (ahead != "me") || !errors.Is(behind.err, locker.ErrMaxWait) {
			t.Errorf("behind a request of %s: %v", ahead, behind.err)
		}
	})
}

// A request does not end as "held by another" after another hold of its owner was released: its own
// attempts, of unknown outcome, may have acquired the lock beside it.
func TestOwnerIsNotRefusedByItsRelease(t *testing.T) {
	bubbles(t, map[string]int{"one attempt": 1, "two attempts": 2}, func(t *testing.T, s *server, attempts int) {
		r, sent, silent := newReentrant(s, "me"), 0, false
		l := wrap(t, reentering{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			switch {
			case req.Note != "unanswered" && !silent:
				return r.Acquire(ctx, req)
			case sent < attempts-1:
				sent++
				return nil, errUnknown
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
		})}, retry.Config{Policy: constant(time.Minute)})
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{Owner: "rival"})
		unanswered := s.begin(t.Context(), l, locker.Request{Owner: "me", Note: "unanswered", MaxWait: 50 * ms})
		elapse(10 * ms)
		other := s.begin(t.Context(), l, locker.Request{Owner: "me", NoWait: true})
		other.mustLock(t)
		silent = true
		elapse(10 * ms)
		check.OK(t, other.lock.Release(t.Context()))
		check.Advance(100 * ms)
		match(t, unanswered.err, []error{locker.ErrUnknownOutcome, locker.ErrMaxWait}, []error{locker.ErrNotAcquired})
		cancel()
	})
}

// An owner that has released the lock does not acquire it again ahead of a waiter, even if refusals
// named that owner to the waiter.
func TestOwnerDoesNotPassTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub, s.latency = true, ms
		s.answer = func(_ int, req locker.Request) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			for h := range s.held[name] {
				if h.owner != req.Owner {
					return &locker.ContentionError{Name: name, Owner: h.owner, Hint: lease.Hint{Jitter: 5 * ms}}
				}
			}
			return nil
		}
		l := wrap(t, reentering{s}, retry.Config{})
		me := locker.Request{Name: name, Owner: "me"}
		lock := locker.Must(l.Acquire(t.Context(), me))
		rival := s.begin(t.Context(), l, locker.Request{Owner: "rival"})
		elapse(2 * ms)
		check.OK(t, lock.Release(t.Context()))
		again := s.begin(t.Context(), l, me)
		elapse(100 * ms)
		synctest.Wait()
		rival.mustLock(t)
		if again.done {
			t.Errorf("the owner returned with %v, %v", again.lock, again.err)
		}
		check.OK(t, rival.lock.Release(t.Context()))
		check.Advance(time.Second)
		again.mustLock(t)
	})
}

package retry_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// 64 goroutines acquire one lock again and again: one attempt is in flight at a time, and nobody
// waits for more than one turn of each of the others.
func TestFairness(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		const workers, rounds = 64, 20
		s.latency = ms
		l := wrap(t, s, retry.Config{})
		turns, longest, inside := 0, 0, 0
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for range rounds {
					before := turns
					lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
					if inside++; inside != 1 {
						t.Errorf("%d inside", inside)
					}
					longest = max(longest, turns-before)
					turns++
					elapse(3 * ms)
					inside--
					check.OK(t, lock.Release(t.Context()))
				}
			})
		}
		wg.Wait()
		if turns != workers*rounds || longest > workers {
			t.Errorf("%d turns, the longest wait was %d turns; want %d, at most %d", turns, longest, workers*rounds, workers)
		}
		check.Equal(t, "attempts at once", s.most[name], 1)
		if n, most := len(s.times()), 3*workers*rounds; n > most {
			t.Errorf("%d attempts for %d turns", n, workers*rounds)
		}
	})
}

// Names do not wait for each other, nor do Lockers wrapped by one Middleware.
func TestQueuesApart(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		other := newServer()
		mw := locker.Must(retry.New(retry.Config{Policy: constant(time.Minute)}))
		l, l2 := mw(s), mw(other)
		s.hold()
		waiting := s.begin(t.Context(), l, locker.Request{MaxWait: time.Second})
		s.begin(t.Context(), l, locker.Request{Name: "other"}).wantLock(t, 0)
		s.begin(t.Context(), l2, locker.Request{}).wantLock(t, 0)
		elapse(time.Second)
		waiting.wantError(t, time.Second, locker.ErrMaxWait)
	})
}

// A shared waiter at the head asks for all shared ones up to the first exclusive one; they enter
// after it. A later shared waiter stays behind the exclusive one, and joins the others if that
// gives up.
func TestSharedHead(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T, s *server, l locker.Locker, note string, mode locker.Mode) *result {
		t.Helper()
		return s.begin(t.Context(), l, locker.Request{Mode: mode, Note: note})
	}
	t.Run("released", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
			h := s.hold()
			r1 := begin(t, s, l, "r1", locker.Shared)
			r2 := begin(t, s, l, "r2", locker.Shared)
			r3 := begin(t, s, l, "r3", locker.Shared)
			w := begin(t, s, l, "w", locker.Exclusive)
			r4 := begin(t, s, l, "r4", locker.Shared)
			check.EqualSlices(t, "attempts before the release", s.notes(), []string{"r1", "r1"})
			elapse(time.Second)
			s.free(h)
			for _, r := range []*result{r1, r2, r3} {
				r.wantLock(t, time.Second)
			}
			if w.done || r4.done {
				t.Error("the writer or the reader behind it got in")
			}
			if got := s.notes()[2:]; len(got) != 4 || got[0] != "r1" || got[3] != "w" {
				t.Errorf("attempts after the release: %v, want r1, the two other readers, then the writer", got)
			}
			elapse(time.Second)
			for _, r := range []*result{r1, r2, r3} {
				check.OK(t, r.lock.Release(t.Context()))
			}
			w.wantLock(t, 2*time.Second)
			check.OK(t, w.lock.Release(t.Context()))
			r4.wantLock(t, 2*time.Second)
		})
	})
	t.Run("the writer between gives up", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
			h := s.hold()
			r1 := begin(t, s, l, "r1", locker.Shared)
			ctx, cancel := context.WithCancel(t.Context())
			w := s.begin(ctx, l, locker.Request{Note: "w"})
			r2 := begin(t, s, l, "r2", locker.Shared)
			w2 := begin(t, s, l, "w2", locker.Exclusive)
			cancel()
			w.wantError(t, 0, context.Canceled, locker.ErrNotAcquired)
			check.EqualSlices(t, "attempts", s.notes(), []string{"r1", "r1"})
			elapse(time.Second)
			s.free(h)
			r1.wantLock(t, time.Second)
			r2.wantLock(t, time.Second)
			for _, r := range []*result{r1, r2} {
				check.OK(t, r.lock.Release(t.Context()))
			}
			w2.wantLock(t, time.Second)
		})
	})
	t.Run("the first of the group gives up", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
			h := s.hold()
			ctx, cancel := context.WithCancel(t.Context())
			r1 := s.begin(ctx, l, locker.Request{Mode: locker.Shared})
			r2 := begin(t, s, l, "r2", locker.Shared)
			s.free(h)
			cancel() // its caller may have taken the wake-up out
			synctest.Wait()
			r2.wantLock(t, 0)
			if r1.err == nil && r1.lock == nil {
				t.Error("the first has not returned")
			}
		})
	})
}

// Of the readers behind a writer of their process one tries first, whether it got in or gave up.
func TestOneReaderTriesAfterAWriter(t *testing.T) {
	bubbles(t, map[string]bool{"it gives up": false, "it gets in": true}, func(t *testing.T, s *server, gets bool) {
		h := s.hold()
		s.latency = ms
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
		ctx, cancel := context.WithCancel(t.Context())
		wctx, wcancel := context.WithCancel(t.Context())
		s.begin(wctx, l, locker.Request{})
		elapse(10 * ms)
		for range 1000 {
			go func() { _, _ = l.Acquire(ctx, locker.Request{Name: name, Mode: locker.Shared}) }()
		}
		elapse(10 * ms)
		before := len(s.times())
		if gets {
			s.free(h)
		} else {
			wcancel()
		}
		check.Advance(10 * ms)
		check.AtMost(t, "attempts while the lock is held", len(s.times())-before, 5)
		cancel()
		wcancel()
	})
}

// A writer that gives up behind a reader does not disturb the reader's attempt in flight.
func TestWriterBehindReaderGivesUp(t *testing.T) {
	bubbles(t, map[string]bool{"in one line": false, "in two lines": true}, func(t *testing.T, s *server, ordered bool) {
		s.ordered, s.noPubSub = ordered, true
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		s.hold()
		s.begin(t.Context(), l, locker.Request{Note: "learns", MaxWait: ms})
		elapse(ms)
		s.latency = 10 * ms
		reader := s.begin(t.Context(), l, locker.Request{Note: "reader", Mode: locker.Shared, MaxWait: time.Minute})
		s.begin(t.Context(), l, locker.Request{Note: "writer", MaxWait: ms})
		elapse(time.Minute)
		reader.wantError(t, time.Minute+ms, locker.ErrMaxWait)
		readers := slices.DeleteFunc(s.notes(), func(note string) bool { return note != "reader" })
		check.EqualSlices(t, "attempts of the reader", readers, []string{"reader"})
	})
}

// If the strategy orders the modes, the first waiter of the other mode leads too, and tries at once. It
// does not depend on the waiter ahead.
func TestBothModesLead(t *testing.T) {
	type test struct{ first, second locker.Mode }
	bubbles(t, map[string]test{
		"a writer behind a reader": {locker.Shared, locker.Exclusive},
		"a reader behind a writer": {locker.Exclusive, locker.Shared},
	}, func(t *testing.T, s *server, tt test) {
		s.ordered, s.latency = true, ms
		s.answer = func(_ int, req locker.Request) error {
			if req.Note == "first" {
				elapse(time.Second) // its answer does not come
			}
			return &locker.ContentionError{Name: name}
		}
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		s.begin(t.Context(), l, locker.Request{Note: "first", Mode: tt.first, MaxWait: 2 * time.Second})
		second := s.begin(t.Context(), l, locker.Request{Note: "second", Mode: tt.second, MaxWait: time.Minute})
		elapse(ms)
		check.EqualSlices(t, "attempts", s.notes(), []string{"first", "second"})
		elapse(time.Minute)
		second.wantError(t, time.Minute, locker.ErrMaxWait)
	})
}

// Behind a head with a hanging attempt, a waiter that gives up leaves at once. When the head
// leaves, the next one tries.
func TestHeadThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		free := make(chan struct{})
		s.answer = func(n int, _ locker.Request) error {
			if n == 0 {
				<-free // it ignores its ctx too
				return errors.New("at last")
			}
			return nil
		}
		l := wrap(t, s, retry.Config{FailFast: true})
		head := s.begin(t.Context(), l, locker.Request{})
		var behind []*result
		for i := range 5 {
			behind = append(behind, s.begin(t.Context(), l, locker.Request{MaxWait: time.Duration(i+1) * time.Second}))
		}
		last := s.begin(t.Context(), l, locker.Request{})
		elapse(10 * time.Second)
		for i, r := range behind {
			r.wantError(t, time.Duration(i+1)*time.Second, locker.ErrMaxWait)
			match(t, r.err, nil, []error{locker.ErrNotAcquired, context.DeadlineExceeded})
		}
		close(free)
		head.wantError(t, 10*time.Second)
		last.wantLock(t, 10*time.Second)
	})
}

// With a reentrant strategy, a nested acquire tries before it queues: it must not wait behind
// waiters for its owner's lock.
func TestOwnerTriesFirst(t *testing.T) {
	t.Parallel()
	own := func(ctx context.Context) (context.Context, locker.Request) { return ctx, locker.Request{Owner: holder} }
	tests := []struct {
		name     string
		request  func(context.Context) (context.Context, locker.Request)
		reenters bool
		early    bool // it tries before its turn
		asks     bool // the first waiter asks for it
	}{
		{"of the holder, in the request", own, true, true, false},
		{"of the holder, in ctx", func(ctx context.Context) (context.Context, locker.Request) {
			return locker.WithOwner(ctx, holder), locker.Request{}
		}, true, true, false},
		{"of another", func(ctx context.Context) (context.Context, locker.Request) {
			return ctx, locker.Request{Owner: "another"}
		}, true, false, true},
		{"without one", func(ctx context.Context) (context.Context, locker.Request) { return ctx, locker.Request{} }, true, false, false},
		{"of the holder, not reentrant", own, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.noPubSub = true
				h := s.hold()
				var inner locker.Locker = s
				if tt.reenters {
					inner = reentering{s}
				}
				l := wrap(t, inner, retry.Config{Policy: constant(time.Minute)})
				stranger := s.begin(t.Context(), l, locker.Request{Note: "stranger"})
				ctx, req := tt.request(t.Context())
				req.Note = "nested"
				nested := s.begin(ctx, l, req)
				want := []string{"stranger"}
				if tt.early {
					want = append(want, "nested") // once: the fake refuses it
				}
				check.EqualSlices(t, "attempts", s.notes(), want)
				elapse(time.Second)
				if tt.asks {
					want = append(want, "stranger")
				}
				check.EqualSlices(t, "attempts", s.notes(), want)
				s.free(h)
				elapse(time.Minute)
				stranger.wantLock(t, time.Minute)
				if nested.done {
					t.Error("the second got in beside the first")
				}
				check.OK(t, stranger.lock.Release(t.Context()))
				nested.wantLock(t, time.Minute+time.Second)
			})
		})
	}
	t.Run("alone, it does not try twice", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			s.noPubSub = true
			h := s.hold()
			time.AfterFunc(500*ms, func() { s.free(h) })
			l := wrap(t, s, retry.Config{Policy: constant(time.Second)})
			s.begin(t.Context(), l, locker.Request{Owner: "me"})
			elapse(2 * time.Second)
			check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, time.Second})
		})
	})
}

// NoWait and Resume do not queue.
func TestPastTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.hold()
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
		waiting := s.begin(t.Context(), l, locker.Request{Note: "waiting", MaxWait: time.Second})
		noWait := s.begin(t.Context(), l, locker.Request{Note: "no wait", NoWait: true, MaxWait: time.Hour})
		noWait.wantError(t, 0, locker.ErrNotAcquired, errHint)
		resume := s.begin(t.Context(), l, locker.Request{Note: "resume", Resume: locker.NewLock(context.Background(), lease.HoldInfo{Name: name, Token: "t"}, nil).Handle()})
		resume.wantError(t, 0, locker.ErrNotAcquired)
		if waiting.done {
			t.Error("the waiter has left")
		}
		if notes := s.notes(); !slices.Equal(notes[2:], []string{"no wait", "resume"}) {
			t.Errorf("attempts: %v", notes)
		}
		for _, a := range s.attempts {
			want := time.Duration(0)
			if a.note == "no wait" { // it bounds the one attempt
				want = time.Hour
			}
			check.Equal(t, "MaxWait passed on by "+a.note, a.maxed, want)
			check.Equal(t, "NoWait passed on by "+a.note, a.once, a.note == "no wait")
		}
		elapse(time.Second)
		waiting.wantError(t, time.Second, locker.ErrMaxWait)
	})
}

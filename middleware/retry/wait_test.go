package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

const ms = time.Millisecond

// Contract 12: the head tries again at the first of a wake-up, the end of the lease and the
// backoff.
func TestWhenTheHeadTries(t *testing.T) {
	type test struct {
		prepare func(s *server)
		policy  func() backoff.BackOff
		freeAt  time.Duration
		events  func(s *server, l locker.Locker) // other events, in a goroutine of their own
		want    []time.Duration                  // attempts; the last one succeeds
	}
	bubbles(t, map[string]test{
		"release heard of": {
			policy: constant(time.Minute), freeAt: 3 * time.Second,
			want: []time.Duration{0, 0, 3 * time.Second},
		},
		"release not published: backoff": {
			policy: constant(time.Second), freeAt: 2500 * ms,
			prepare: func(s *server) { s.mute = true },
			want:    []time.Duration{0, 0, 1000 * ms, 2000 * ms, 3000 * ms},
		},
		"release not published: end of the lease": {
			policy: constant(time.Minute), freeAt: 700 * ms,
			prepare: func(s *server) { s.mute, s.lease = true, 700*ms },
			want:    []time.Duration{0, 0, 701 * ms},
		},
		"a lease that was renewed is looked at when it would have ended, and the backoff goes on beside it": {
			policy: constant(time.Second), freeAt: 1500 * ms,
			prepare: func(s *server) { s.mute, s.lease = true, 400*ms },
			want:    []time.Duration{0, 0, 401 * ms, 802 * ms, 1000 * ms, 1401 * ms, 1802 * ms},
		},
		"no channel": {
			policy: constant(time.Second), freeAt: 1500 * ms,
			prepare: func(s *server) { s.noPubSub = true },
			want:    []time.Duration{0, 1000 * ms, 2000 * ms},
		},
		"no pub/sub": {
			policy: constant(time.Second), freeAt: 2500 * ms,
			prepare: func(s *server) { s.ask = func(context.Context, int) error { return errors.ErrUnsupported } },
			want:    []time.Duration{0, 1000 * ms, 2000 * ms, 3000 * ms},
		},
		"a subscription that comes late": {
			policy: constant(400 * ms), freeAt: 1300 * ms,
			prepare: func(s *server) { s.ask = late(time.Second) },
			want:    []time.Duration{0, 400 * ms, 800 * ms, 1000 * ms, 1200 * ms, 1300 * ms},
		},
		"a subscribe that hangs does not keep from polling": {
			policy: constant(2 * time.Second), freeAt: 5 * time.Second,
			prepare: func(s *server) { s.ask = hang },
			want:    []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second},
		},
		"a wake-up for nothing": {
			policy: constant(time.Minute), freeAt: 3 * time.Second,
			events: func(s *server, _ locker.Locker) { elapse(time.Second); s.publish(name + ":wake") },
			want:   []time.Duration{0, 0, time.Second, 3 * time.Second},
		},
		"wake-ups that come during an attempt bring about one more": {
			policy: constant(time.Minute), freeAt: 5 * time.Second,
			prepare: func(s *server) { s.latency = 100 * ms },
			events: func(s *server, _ locker.Locker) {
				elapse(time.Second)
				s.publish(name + ":wake")
				elapse(50 * ms)
				s.publish(name + ":wake")
				elapse(20 * ms)
				s.publish(name + ":wake")
			},
			want: []time.Duration{0, 100 * ms, time.Second, 1100 * ms, 5 * time.Second},
		},
		"exponential": {
			freeAt: 600 * ms,
			policy: func() backoff.BackOff {
				return backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*ms), backoff.WithMultiplier(2), backoff.WithRandomizationFactor(0))
			},
			prepare: func(s *server) { s.mute = true },
			want:    []time.Duration{0, 0, 100 * ms, 300 * ms, 700 * ms},
		},
		"a policy that was not reset": {
			freeAt: 600 * ms,
			policy: func() backoff.BackOff {
				return &backoff.ExponentialBackOff{InitialInterval: 400 * ms, MaxInterval: time.Second, Multiplier: 2, Clock: backoff.SystemClock}
			},
			prepare: func(s *server) { s.noPubSub = true },
			want:    []time.Duration{0, 400 * ms, 1200 * ms},
		},
	}, func(t *testing.T, s *server, tt test) {
		if tt.prepare != nil {
			tt.prepare(s)
		}
		l := wrap(t, s, retry.Config{Policy: tt.policy})
		h := s.hold()
		time.AfterFunc(tt.freeAt, func() { s.free(h) })
		if tt.events != nil {
			go tt.events(s, l)
		}
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		check.EqualSlices(t, "attempts", s.times(), tt.want)
		check.OK(t, lock.Release(t.Context()))
	})
}

// The default policy: from 5 ms to 250 ms, each pause half to one and a half of that.
func TestDefaultPolicy(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.noPubSub = true
		s.hold()
		l := wrap(t, s, retry.Config{})
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: time.Hour})
		check.Is(t, err, locker.ErrMaxWait)
		at := s.times()
		for i, want := 1, 5*ms; i < len(at); i, want = i+1, min(2*want, 250*ms) {
			if pause := at[i] - at[i-1]; pause < want/2 || pause > want*3/2+1 {
				t.Fatalf("pause %d is %v, want %v half to one and a half", i, pause, want)
			}
		}
		if n := len(at); n < 9600 || n > 19200 {
			t.Errorf("%d attempts in an hour, want about four a second", n)
		}
	})
}

// A wake-up before an attempt is sent is answered by that attempt, and causes no other.
func TestHeardBeforeTheAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		woken := 0
		ctx, cancel := context.WithCancel(locktrace.With(t.Context(), &locktrace.Trace{Woken: func(context.Context, locktrace.WokenInfo) {
			if woken++; woken < 3 {
				s.publish(name + ":wake")
				check.Is(t, lock.Upgrade(t.Context()), errors.ErrUnsupported)
			}
		}}))
		head, leave := context.WithCancel(t.Context())
		s.begin(head, l, locker.Request{Note: "head"})
		s.begin(ctx, l, locker.Request{Note: "behind"})
		elapse(time.Second)
		leave() // a turn for the one behind
		synctest.Wait()
		s.publish(name + ":wake")
		synctest.Wait()
		check.EqualSlices(t, "attempts", s.notes()[1:], []string{"head", "head", "behind", "behind"})
		cancel()
	})
}

// A wake-up taken by one leader before its attempt is passed to the other, whose attempt is in
// flight.
func TestHeardForTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		h := s.hold()
		s.ordered = true
		l := wrap(t, s, retry.Config{Policy: constant(time.Hour)})
		refusal := &locker.ContentionError{Name: name, Hint: lease.Hint{Channel: driver.NewChannel(s, name+":wake")}}
		slow := false
		s.answer = func(_ int, req locker.Request) error {
			switch {
			case req.Note == "a" || len(s.notes()) < 3:
				return refusal
			case slow:
				slow = false
				elapse(200 * ms) // the answer is on its way
				return refusal
			}
			return nil
		}
		ctx, cancel := context.WithCancel(locktrace.With(t.Context(), &locktrace.Trace{Woken: func(_ context.Context, i locktrace.WokenInfo) {
			if i.By == locktrace.ByRelease {
				elapse(100 * ms)
			}
		}}))
		a := s.begin(ctx, l, locker.Request{Note: "a", Mode: locker.Shared})
		b := s.begin(t.Context(), l, locker.Request{Note: "b"})
		slow = true
		s.publish(name + ":wake")
		elapse(50 * ms)
		s.free(h)
		elapse(time.Second)
		b.wantLock(t, 200*ms)
		cancel()
		a.wantError(t, 1050*ms, context.Canceled)
	})
}

// WakeJitter delays attempts after a release or the end of a lease, and no others. It obeys ctx.
func TestWakeJitter(t *testing.T) {
	t.Parallel()
	t.Run("delay", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			l := wrap(t, s, retry.Config{Policy: constant(time.Minute), WakeJitter: time.Second})
			seen := map[time.Duration]bool{}
			for range 5 {
				h := s.hold()
				start := time.Since(s.start)
				time.AfterFunc(3*time.Second, func() { s.free(h) })
				lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
				at := s.times()
				check.EqualSlices(t, "first attempts", at[len(at)-3:len(at)-1], []time.Duration{start, start})
				delay := at[len(at)-1] - start - 3*time.Second
				if delay < 0 || delay >= time.Second {
					t.Errorf("tried %v after the release, want less than a second", delay)
				}
				seen[delay] = true
				check.OK(t, lock.Release(t.Context()))
			}
			if len(seen) < 2 {
				t.Errorf("the delay is always the same: %v", seen)
			}
		})
	})
	t.Run("cancelled meanwhile", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			l := wrap(t, s, retry.Config{Policy: constant(time.Hour), WakeJitter: 1 << 62})
			h := s.hold()
			first := s.begin(t.Context(), l, locker.Request{MaxWait: 5 * time.Second})
			second := s.begin(t.Context(), l, locker.Request{})
			elapse(time.Second)
			s.free(h)
			elapse(5 * time.Second)
			first.wantError(t, 5*time.Second, locker.ErrMaxWait)
			second.wantLock(t, 5*time.Second) // the wake-up was passed on
		})
	})
}

// A refusal can ask for a delay of its own. The longer of both is the bound.
func TestRefusalsAskForJitter(t *testing.T) {
	type test struct{ cfg, asked, most time.Duration }
	bubbles(t, map[string]test{
		"none":                      {0, 0, 0},
		"of the refusal":            {0, time.Second, time.Second},
		"of the Config":             {time.Second, 10 * ms, time.Second},
		"the refusal asks for more": {10 * ms, time.Second, time.Second},
	}, func(t *testing.T, s *server, tc test) {
		s.jitter = tc.asked
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute), WakeJitter: tc.cfg})
		var longest time.Duration
		for range 20 {
			h := s.hold()
			time.AfterFunc(3*time.Second, func() { s.free(h) })
			start := time.Now()
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job"}))
			longest = max(longest, time.Since(start)-3*time.Second)
			check.OK(t, lock.Release(t.Context()))
		}
		if longest > tc.most || longest < tc.most/5 {
			t.Errorf("the longest of 20 delays was %v, want up to %v", longest, tc.most)
		}
	})
}

// A poll of a held lock is not sent if ctx would cut it off: only an unknown outcome could result.
func TestNoPollThatWouldBeCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.latency = 100 * ms
		s.hold()
		s.noPubSub = true
		l := wrap(t, s, retry.Config{Policy: constant(300 * ms)})
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 850 * ms})
		match(t, err, []error{locker.ErrNotAcquired, locker.ErrMaxWait}, []error{locker.ErrUnknownOutcome})
		check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, 400 * ms})
		check.Equal(t, "gave up after", time.Since(s.start), 850*ms)
	})
}

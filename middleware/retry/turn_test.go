package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A release within 3 ms of the acquire that began the turn of a process leaves the lock to its next
// waiter, and the first release after that does not. The next acquire begins another turn.
func TestTurnOfAProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/10
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		done := make(chan error, 5)
		for _, holds := range []time.Duration{0, 2 * ms, 2 * ms, 0, 5 * ms} {
			go func() {
				lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
				if err == nil {
					elapse(holds)
					err = lock.Release(t.Context())
				}
				done <- err
			}()
			elapse(ms) // they enter in this order
		}
		elapse(time.Second)
		s.free(other)
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		var kept []bool
		for _, id := range s.waiters {
			kept = append(kept, id != "")
		}
		// Until about 0, 2 and 4 ms after the turn began; then a new one, whose last waiter is alone.
		equal(t, "releases that left the lock to a waiter here", kept, []bool{true, true, false, true, false})
	})
}

// An attempt that waits says for whom: the ID is that of the process, and a subscription is known.
func TestWaitingOfAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue = true
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		start := time.Now()
		time.AfterFunc(time.Second, func() { s.free(other) })
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		last := s.waiting[len(s.waiting)-1]
		if s.waiting[0] != (lease.Waiting{}) || !lease.IsToken(last.ID) || !last.Since.Equal(start) || !last.Subscribed || !last.Until.IsZero() {
			t.Errorf("the attempts were of %+v", s.waiting)
		}
		if slices.ContainsFunc(s.waiting[1:], func(w lease.Waiting) bool { return w.ID != last.ID }) {
			t.Errorf("the attempts were of several processes: %+v", s.waiting)
		}
	})
}

// A waiter with a place at the server, which listens, polls when the refusal says so. It polls by
// the policy if there is one, if it cannot listen, or if the holder is another library's.
func TestPolling(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		prepare func(s *server)
		policy  func() backoff.BackOff
		rarely  bool
	}{
		"a place":             {rarely: true},
		"a policy":            {policy: constant(100 * ms)},
		"no subscription":     {prepare: func(s *server) { s.noPubSub = true }},
		"a foreign holder":    {prepare: func(s *server) { s.foreign = true }},
		"no queue":            {prepare: func(s *server) { s.queue = false }},
		"a silent subscriber": {prepare: func(s *server) { s.ask = hang }},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.queue, s.lease = true, 2*time.Second
				if tt.prepare != nil {
					tt.prepare(s)
				}
				l := wrap(t, s, retry.Config{Policy: tt.policy})
				s.hold()
				_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 20 * time.Second})
				if !errors.Is(err, locker.ErrMaxWait) {
					t.Errorf("Acquire: %v, want ErrMaxWait", err)
				}
				if n := len(s.times()); tt.rarely != (n <= 12) {
					t.Errorf("%d attempts in 20 s", n)
				}
			})
		})
	}
}

// If the waiter that a release left the lock to gives up, the first waiter at the server is woken.
func TestKeptLockIsPassedOn(t *testing.T) {
	t.Parallel()
	for what, during := range map[string]bool{"during the release": true, "after it": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.queue = true
				l := wrap(t, s, retry.Config{WakeJitter: time.Hour})
				other := s.hold()
				first := make(chan error, 1)
				go func() {
					lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
					first <- errors.Join(err, lock.Release(t.Context()))
				}()
				elapse(ms)
				ctx, cancel := context.WithCancel(t.Context())
				second := s.begin(ctx, l, locker.Request{})
				s.releasing = func() {
					s.releasing = nil
					if during {
						cancel()
						synctest.Wait()
					}
				}
				s.free(other)
				if err := <-first; err != nil {
					t.Error(err)
				}
				cancel()
				synctest.Wait()
				if !errors.Is(second.err, context.Canceled) {
					t.Errorf("the waiter that gave up: %v", second.err)
				}
				synctest.Wait()
				if len(s.waiters) != 2 || s.waiters[0] == "" || s.waiters[1] != "" {
					t.Errorf("the releases named %q, want a waiter and then none", s.waiters)
				}
			})
		})
	}
}

// A process that acquires a contended lock again and again subscribes once, and its first attempt
// has the place. After a waiter that gave up, nothing is kept.
func TestSubscriptionIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.lease = true, 2*time.Second
		l := wrap(t, s, retry.Config{})
		for range 3 {
			other := s.hold()
			time.AfterFunc(100*ms, func() { s.free(other) })
			lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
			elapse(900 * ms)
		}
		if n := len(s.askings()); n != 1 {
			t.Errorf("%d subscriptions for 3 acquires, want 1", n)
		}
		equal(t, "attempts", s.times(), []time.Duration{0, 0, 100 * ms, 1000 * ms, 1100 * ms, 2000 * ms, 2100 * ms})
		s.hold()
		if _, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: time.Second}); !errors.Is(err, locker.ErrMaxWait) {
			t.Error(err)
		}
		if n := s.open(); n != 0 {
			t.Errorf("%d subscriptions are kept for a waiter that gave up", n)
		}
	})
}

// A leader that did not wait yet polls by the policy, though the queue listens: it has no place.
func TestNewLeaderHasNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.ordered, s.lease = true, true, time.Hour
		l := wrap(t, s, retry.Config{})
		s.hold()
		s.begin(t.Context(), l, locker.Request{Mode: locker.Shared, MaxWait: 10 * time.Second})
		elapse(time.Second)
		_ = s.begin(t.Context(), l, locker.Request{MaxWait: 5 * time.Second})
		elapse(time.Second)
		last := s.waiting[len(s.waiting)-1]
		if !last.Subscribed || last.ID == "" {
			t.Errorf("the latest attempt was of %+v, want one with a place", last)
		}
		elapse(10 * time.Second)
	})
}

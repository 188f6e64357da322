package retry_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A release within 3 ms of the acquire that began its process's turn leaves the lock to the next
// waiter here. The first later release does not; the next acquire begins another turn. A strict
// order has no turns.
func TestTurnOfAProcess(t *testing.T) {
	type test struct {
		fair bool
		want []bool // the release leaves the lock to the next waiter here
	}
	bubbles(t, map[string]test{
		// Until about 0, 2, 4 ms after the turn's begin; then a new turn, its last waiter alone.
		"turns":          {false, []bool{true, true, false, true, false}},
		"a strict order": {true, make([]bool, 5)},
	}, func(t *testing.T, s *server, tt test) {
		s.queue, s.fair, s.latency = true, tt.fair, ms/10
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		done := make(chan error, 5)
		for _, holds := range []time.Duration{0, 2 * ms, 2 * ms, 0, 5 * ms} {
			go func() { done <- use(t.Context(), l, holds) }()
			elapse(ms) // they enter in this order
		}
		elapse(time.Second)
		s.free(other)
		for range cap(done) {
			check.OK(t, <-done)
		}
		var left []bool
		for i, op := range s.releases {
			left = append(left, op.ForWaiter)
			if own := op.Waiter != ""; own != (i < 4) {
				t.Errorf("release %d names a waiter of this process: %v", i+1, own)
			}
		}
		check.EqualSlices(t, "left to the next waiter here", left, tt.want)
	})
}

// use holds the lock for d.
func use(ctx context.Context, l locker.Locker, d time.Duration) error {
	lock, err := l.Acquire(ctx, locker.Request{Name: name})
	if err == nil {
		elapse(d)
		err = lock.Release(ctx)
	}
	return err
}

// The holder's own request tries before its turn in the queue. That prolongs no turn of its
// process, and begins none: neither if it is refused, nor if it acquires the lock, as a re-entry
// does.
func TestEarlyAttemptsBeginNoTurn(t *testing.T) {
	bubbles(t, map[string]bool{"refused": false, "granted": true}, func(t *testing.T, s *server, granted bool) {
		s.queue, s.latency, s.refused = true, ms/10, ms/20
		l := wrap(t, reentering{s}, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{Owner: holder})
		elapse(ms)
		second := s.begin(t.Context(), l, locker.Request{})
		elapse(time.Second)
		s.free(other)
		check.Advance(2*ms - ms/100)
		s.mute = true
		if granted {
			elapse(10 * ms)
			s.lose()
		}
		third := s.begin(t.Context(), l, locker.Request{Owner: holder})
		elapse(ms/10 + ms/100) // its attempt has reached the server, the refusal is under way
		last := third
		if !granted {
			check.OK(t, first.lock.Release(t.Context()))
			elapse(2*ms + ms/10)
			last = second
		}
		synctest.Wait()
		last.mustLock(t)
		check.OK(t, last.lock.Release(t.Context()))
		check.Equal(t, "left to a waiter here after the turn", s.releases[len(s.releases)-1].ForWaiter, false)
		elapse(time.Minute)
	})
}

// After its first millisecond, a turn serves only waiters from its beginning.
func TestTurnServesThoseWhoWaited(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/100
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		done := make(chan error, 3)
		for range 2 {
			go func() { done <- use(t.Context(), l, ms) }()
			elapse(ms)
		}
		elapse(time.Second)
		s.free(other)
		elapse(ms / 2)
		go func() { done <- use(t.Context(), l, ms) }()
		for range cap(done) {
			check.OK(t, <-done)
		}
		check.EqualSlices(t, "left to a waiter here after 1 ms, 2 ms", []bool{s.releases[0].ForWaiter, s.releases[1].ForWaiter}, []bool{true, false})
	})
}

// If a release left the lock to this process or found no other waiter, the next attempt comes at
// once and reports the lock as free. If the release woke another process, the attempt comes a
// millisecond later.
func TestAttemptAfterARelease(t *testing.T) {
	type test struct {
		fair   bool
		result lease.Result
		holds  time.Duration
		free   bool
		after  time.Duration
	}
	bubbles(t, map[string]test{
		"left to this process":       {free: true},
		"nobody else waits":          {result: lease.Result{Alone: true}, holds: 3 * ms, free: true},
		"it is unknown who waits":    {holds: 3 * ms},
		"another is woken":           {result: lease.Result{WokeOther: true}, holds: 3 * ms, after: ms},
		"another, in a strict order": {result: lease.Result{WokeOther: true}, holds: 3 * ms, fair: true},
		"this process had a place":   {result: lease.Result{Alone: true}, holds: 10 * ms},
	}, func(t *testing.T, s *server, tt test) {
		s.queue, s.fair, s.result, s.latency, s.lease = true, tt.fair, tt.result, ms/100, time.Hour
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := make(chan error, 1)
		go func() { first <- use(t.Context(), l, tt.holds) }()
		elapse(ms)
		second := s.begin(t.Context(), l, locker.Request{})
		elapse(time.Second)
		s.free(other)
		check.OK(t, <-first)
		released := time.Since(s.start)
		check.Advance(2 * ms)
		second.mustLock(t)
		last, waiting := len(s.times())-1, s.waits()
		if after := s.times()[last] - released; waiting[last].Free != tt.free || after != tt.after {
			t.Errorf("the attempt came after %v, free: %v; want after %v, free: %v", after, waiting[last].Free, tt.after, tt.free)
		}
	})
}

// A waiting attempt carries the ID of the process, and whether it has a subscription.
func TestWaitingOfAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue = true
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		start := time.Now()
		time.AfterFunc(time.Second, func() { s.free(other) })
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		check.OK(t, lock.Release(t.Context()))
		last := s.waiting[len(s.waiting)-1]
		if s.waiting[0] != (lease.Waiting{}) || !lease.IsToken(last.ID) || !last.Since.Equal(start) || !last.Subscribed || !last.Until.IsZero() {
			t.Errorf("the attempts were of %+v", s.waiting)
		}
		if slices.ContainsFunc(s.waiting[1:], func(w lease.Waiting) bool { return w.ID != last.ID }) {
			t.Errorf("the attempts were of several processes: %+v", s.waiting)
		}
	})
}

// A listening waiter with a place at the server polls by the refusal's RetryAfter. It polls by the
// policy if one is set, if it cannot listen, or if the holder is another library's.
func TestPolling(t *testing.T) {
	type test struct {
		prepare func(s *server)
		policy  func() backoff.BackOff
		rarely  bool
	}
	bubbles(t, map[string]test{
		"a place":             {rarely: true},
		"a policy":            {policy: constant(100 * ms)},
		"no subscription":     {prepare: func(s *server) { s.noPubSub = true }},
		"a foreign holder":    {prepare: func(s *server) { s.foreign = true }},
		"no queue":            {prepare: func(s *server) { s.queue = false }},
		"a silent subscriber": {prepare: func(s *server) { s.ask = hang }},
	}, func(t *testing.T, s *server, tt test) {
		s.queue, s.lease = true, 2*time.Second
		if tt.prepare != nil {
			tt.prepare(s)
		}
		l := wrap(t, s, retry.Config{Policy: tt.policy})
		s.hold()
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 20 * time.Second})
		check.Is(t, err, locker.ErrMaxWait)
		if n := len(s.times()); tt.rarely != (n <= 12) {
			t.Errorf("%d attempts in 20 s", n)
		}
	})
}

// If the waiter chosen by a release gives up, the first waiter at the server is woken.
func TestKeptLockIsPassedOn(t *testing.T) {
	bubbles(t, map[string]bool{"during the release": true, "after it": false}, func(t *testing.T, s *server, during bool) {
		s.queue = true
		l := wrap(t, s, retry.Config{WakeJitter: time.Hour})
		other := s.hold()
		first := make(chan error, 1)
		go func() {
			lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
			elapse(ms / 10) // the second waits for the release, and then for its jitter
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
		check.OK(t, <-first)
		cancel()
		synctest.Wait()
		check.Is(t, second.err, context.Canceled)
		synctest.Wait()
		if len(s.releases) != 2 || !s.releases[0].ForWaiter || !s.releases[1].WaiterLeft || s.releases[1].Waiter != s.releases[0].Waiter {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// A process that acquires a contended lock again and again subscribes once, and has the place with
// its first attempt. A waiter that gives up leaves nothing behind.
func TestSubscriptionIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.lease = true, 2*time.Second
		l := wrap(t, s, retry.Config{})
		for range 3 {
			other := s.hold()
			time.AfterFunc(100*ms, func() { s.free(other) })
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
			check.OK(t, lock.Release(t.Context()))
			elapse(900 * ms)
		}
		check.Equal(t, "subscriptions for 3 acquires", len(s.askings()), 1)
		check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, 0, 100 * ms, 1000 * ms, 1100 * ms, 2000 * ms, 2100 * ms})
		s.hold()
		if _, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: time.Second}); !errors.Is(err, locker.ErrMaxWait) {
			t.Error(err)
		}
		check.Equal(t, "subscriptions kept for a waiter that gave up", s.open(), 0)
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

// In a strict order the first successful attempt passes its place to the next waiter, which then
// makes no attempt before the release. If that waiter gives up, the release gives up the place.
func TestPlaceIsPassedOn(t *testing.T) {
	bubbles(t, map[string]bool{"the next one waits": false, "it gives up": true}, func(t *testing.T, s *server, givesUp bool) {
		s.queue, s.fair, s.result = true, true, lease.Result{Alone: true}
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := make(chan error, 1)
		go func() { first <- use(t.Context(), l, 2*ms) }()
		elapse(ms)
		ctx, cancel := context.WithCancel(t.Context())
		entered := time.Now()
		second := s.begin(ctx, l, locker.Request{})
		elapse(100 * ms)
		s.free(other)
		elapse(ms)
		waiting := s.waits()
		last := waiting[len(waiting)-1]
		if next := last.Next; !next.Equal(entered) {
			t.Errorf("the attempt passes its place on to who has waited since %v, want %v", next, entered)
		}
		want := []lease.Op{{Kind: lease.OpRelease, Waiter: last.ID}}
		if givesUp {
			want[0].WaiterLeft = true
			cancel()
		}
		check.OK(t, <-first)
		elapse(ms)
		cancel()
		synctest.Wait()
		check.EqualSlices(t, "releases", s.releases, want)
		if attempts := len(s.waits()) - len(waiting); !givesUp && (attempts != 1 || second.lock == nil) {
			t.Errorf("%d attempts of the next one, %v", attempts, second.err)
		}
	})
}

// An acquire that waited before it came to retry has a place at the server from its first attempt,
// dated from the begin of its wait: it passes no waiter woken by a release.
func TestWaitedBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, since := wrap(t, s, retry.Config{}), time.Now().Add(-time.Minute)
		ctx := lease.WithWaiting(t.Context(), lease.Waiting{Since: since})
		lock := locker.Must(l.Acquire(ctx, locker.Request{Name: name}))
		if first := s.waits()[0]; first.ID == "" || !first.Since.Equal(since) {
			t.Errorf("the first attempt was of %+v", first)
		}
		check.OK(t, lock.Release(t.Context()))
	})
}

package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// After a release that leaves the lock to this process, the next waiter does not wait for the
// answer. If its attempt came before the release, it tries again after the answer. No other turn
// begins.
func TestAttemptDuringARelease(t *testing.T) {
	const trip, late = ms / 10, ms / 2
	type test struct {
		refused            time.Duration // how long a refusal is under way
		executed, answered time.Duration // after the sending, and after the execution
		err                error
		want               []time.Duration // the attempts, counted from the release's sending
		free               bool            // the last attempt reports the lock as probably free
	}
	bubbles(t, map[string]test{
		"after the release":                        {0, 0, late, nil, []time.Duration{0}, true},
		"before the release":                       {0, late, 0, nil, []time.Duration{0, late}, false},
		"refused after the answer to the release":  {late, 2 * trip, 0, nil, []time.Duration{0, trip + late}, false},
		"before a release that fails":              {0, late, 0, errCut, []time.Duration{0, late}, false},
		"after a release whose outcome is unknown": {0, 0, late, errCut, []time.Duration{0}, true},
	}, func(t *testing.T, s *server, tt test) {
		s.queue, s.latency = true, trip
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		elapse(ms)
		second := s.begin(t.Context(), l, locker.Request{})
		elapse(time.Second)
		s.free(other)
		check.Advance(2 * trip)
		s.mute = true // nobody else tries
		before, sent := len(s.times()), time.Since(s.start)
		s.refused = tt.refused
		s.releasing = func() { elapse(tt.executed) }
		s.answering = func() error { elapse(tt.answered); return tt.err }
		check.Is(t, first.lock.Release(t.Context()), tt.err)
		s.releasing, s.answering = nil, nil
		check.Advance(time.Second)
		second.mustLock(t)
		attempts := s.times()[before:]
		for i := range attempts {
			attempts[i] -= sent
		}
		check.EqualSlices(t, "the attempts came after", attempts, tt.want)
		waiting := s.waits()
		check.Equal(t, "the last attempt says that the lock is free", waiting[len(waiting)-1].Free, tt.free)
		synctest.Wait()
		check.Equal(t, "releases", len(s.releases), 1)
	})
}

// An attempt before the release does not prolong the turn of its process.
func TestTurnGoesOnAfterAnEarlyAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/100
		s.releasing = func() { elapse(ms / 2) } // each attempt comes before the release
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		done := make(chan error, 8)
		for range cap(done) {
			go func() { done <- use(t.Context(), l, ms/2) }()
			elapse(ms)
		}
		elapse(time.Second)
		s.free(other)
		for range cap(done) {
			check.OK(t, <-done)
		}
		var kept int
		for _, op := range s.releases {
			if !op.ForWaiter {
				break
			}
			kept++
		}
		check.Equal(t, "releases of a millisecond that left the lock to this process", kept, 3)
	})
}

// If the next waiter gives up between its attempt and the answer to the release, the first waiter
// at the server is woken.
func TestEarlyAttemptIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/100
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		elapse(ms)
		ctx, cancel := context.WithCancel(t.Context())
		second := s.begin(ctx, l, locker.Request{})
		elapse(time.Second)
		s.free(other)
		check.Advance(ms)
		s.mute = true
		s.releasing = func() {
			s.releasing = nil
			elapse(ms)
			cancel()
			synctest.Wait()
		}
		check.OK(t, first.lock.Release(t.Context()))
		synctest.Wait()
		check.Is(t, second.err, context.Canceled)
		if len(s.releases) != 2 || !s.releases[0].ForWaiter || !s.releases[1].WaiterLeft {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// The same for an attempt sent before the release and refused after the answer: a waiter with an
// owner tries as soon as it leads.
func TestAttemptFromBeforeTheReleaseIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/100
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		elapse(ms)
		ctx, cancel := context.WithCancel(t.Context())
		second := s.begin(ctx, l, locker.Request{Owner: "me"})
		check.Advance(time.Second)
		s.refused = ms
		s.free(other)
		check.Advance(ms / 4)
		s.mute = true
		check.OK(t, first.lock.Release(t.Context()))
		cancel()
		check.Advance(ms)
		check.Is(t, second.err, context.Canceled)
		if len(s.releases) != 2 || !s.releases[0].ForWaiter || !s.releases[1].WaiterLeft {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// The same if the waiter has not tried yet, and a reader of its process holds the lock meanwhile,
// outside the queue: others may read beside it.
func TestGivesUpBesideAReaderOutsideTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/100
		l := wrap(t, s, retry.Config{WakeJitter: time.Hour})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		elapse(ms)
		s.free(other)
		check.Advance(time.Hour)
		first.mustLock(t)
		ctx, cancel := context.WithCancel(t.Context())
		second := s.begin(ctx, l, locker.Request{})
		elapse(4 * ms) // the turn is over
		check.OK(t, first.lock.Release(t.Context()))
		reader := s.begin(t.Context(), l, locker.Request{NoWait: true, Mode: locker.Shared})
		check.Advance(ms / 50) // the waiter sleeps for longer than that
		reader.mustLock(t)
		cancel()
		synctest.Wait()
		check.Is(t, second.err, context.Canceled)
		if len(s.releases) != 2 || s.releases[0].ForWaiter || !s.releases[1].WaiterLeft {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// A release is answered after its message, by which the next waiter acquired the lock: the
// following waiter makes no attempt while its own process holds the lock.
func TestLateAnswerToARelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency, s.lease = true, ms/10, time.Hour
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		second := s.begin(t.Context(), l, locker.Request{})
		elapse(time.Second)
		s.free(other)
		check.Advance(time.Second) // the turn is over
		first.mustLock(t)
		third := s.begin(t.Context(), l, locker.Request{})
		elapse(time.Second)
		before := len(s.times())
		s.answering = func() error { elapse(ms); return nil }
		check.OK(t, first.lock.Release(t.Context()))
		s.answering = nil
		check.Advance(2 * ms)
		second.mustLock(t)
		check.Equal(t, "attempts", len(s.times())-before, 1)
		check.OK(t, second.lock.Release(t.Context()))
		check.Advance(time.Second)
		third.mustLock(t)
		check.OK(t, third.lock.Release(t.Context()))
	})
}

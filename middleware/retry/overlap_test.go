package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// The waiter to which a release leaves the lock does not wait for the answer. If its attempt came
// before the release, it tries again when the release is answered. That does not begin another
// turn.
func TestAttemptDuringARelease(t *testing.T) {
	t.Parallel()
	const trip, late = ms / 10, ms / 2
	for what, tt := range map[string]struct {
		refused            time.Duration // for which a refusal is under way
		executed, answered time.Duration // after the release was sent, and after that
		err                error
		want               []time.Duration // the attempts, after the release was sent
		free               bool            // the last one says that the lock is probably free
	}{
		"after the release":                        {0, 0, late, nil, []time.Duration{0}, true},
		"before the release":                       {0, late, 0, nil, []time.Duration{0, late}, false},
		"refused after the answer to the release":  {late, 2 * trip, 0, nil, []time.Duration{0, trip + late}, false},
		"before a release that fails":              {0, late, 0, errCut, []time.Duration{0, late}, false},
		"after a release whose outcome is unknown": {0, 0, late, errCut, []time.Duration{0}, true},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.queue, s.latency = true, trip
				l := wrap(t, s, retry.Config{})
				other := s.hold()
				first := s.begin(t.Context(), l, locker.Request{})
				elapse(ms)
				second := s.begin(t.Context(), l, locker.Request{})
				elapse(time.Second)
				s.free(other)
				elapse(2 * trip)
				synctest.Wait()
				s.mute = true // nobody else is to try
				before, sent := len(s.times()), time.Since(s.start)
				s.refused = tt.refused
				s.releasing = func() { elapse(tt.executed) }
				s.answering = func() error { elapse(tt.answered); return tt.err }
				if err := first.lock.Release(t.Context()); !errors.Is(err, tt.err) {
					t.Errorf("Release: %v, want %v", err, tt.err)
				}
				s.releasing, s.answering = nil, nil
				elapse(time.Second)
				synctest.Wait()
				if second.lock == nil {
					t.Fatalf("the second: %v", second.err)
				}
				attempts := s.times()[before:]
				for i := range attempts {
					attempts[i] -= sent
				}
				equal(t, "the attempts came after", attempts, tt.want)
				if waiting := s.waits(); waiting[len(waiting)-1].Free != tt.free {
					t.Errorf("the last attempt says that the lock is free: %v", !tt.free)
				}
				synctest.Wait()
				if n := len(s.releases); n != 1 {
					t.Errorf("%d releases, want 1", n)
				}
			})
		})
	}
}

// An attempt that came before the release does not make the turn of its process longer.
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
			match(t, <-done, nil, nil)
		}
		var kept int
		for _, op := range s.releases {
			if op.Next != lease.NextOwn {
				break
			}
			kept++
		}
		if kept != 3 {
			t.Errorf("%d releases of about a millisecond each left the lock to this process, want 3", kept)
		}
	})
}

// If the waiter that a release was to leave the lock to gives up between its attempt and the
// answer, the first waiter at the server is woken.
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
		elapse(ms)
		synctest.Wait()
		s.mute = true
		s.releasing = func() {
			s.releasing = nil
			elapse(ms)
			cancel()
			synctest.Wait()
		}
		match(t, first.lock.Release(t.Context()), nil, nil)
		synctest.Wait()
		match(t, second.err, []error{context.Canceled}, nil)
		if len(s.releases) != 2 || s.releases[0].Next != lease.NextOwn || s.releases[1].Next != lease.NextOther {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// The same if the attempt was sent before the release, and its refusal comes after the answer to
// the release: a waiter with an owner tries as soon as it leads.
func TestAttemptFromBeforeTheReleaseIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.latency = true, ms/100
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		elapse(ms)
		ctx, cancel := context.WithCancel(t.Context())
		second := s.begin(ctx, l, locker.Request{Owner: "me"})
		elapse(time.Second)
		synctest.Wait()
		s.refused = ms
		s.free(other)
		elapse(ms / 4)
		synctest.Wait()
		s.mute = true
		match(t, first.lock.Release(t.Context()), nil, nil)
		cancel()
		elapse(ms)
		synctest.Wait()
		match(t, second.err, []error{context.Canceled}, nil)
		if len(s.releases) != 2 || s.releases[0].Next != lease.NextOwn || s.releases[1].Next != lease.NextOther {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A waiter that comes while the process gives up its place tries again once that is done: the place
// that was given up may be its own.
func TestWaiterThatComesWhileThePlaceIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.lease = true, time.Hour
		l := wrap(t, s, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{})
		elapse(10 * ms)
		s.releasing = func() {
			s.releasing = func() { elapse(100 * ms) } // the second release is late
			cancel()
			synctest.Wait()
		}
		match(t, lock.Release(t.Context()), nil, nil)
		synctest.Wait()
		s.hold()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		s.begin(ctx, l, locker.Request{})
		elapse(50 * ms)
		s.mute = true // the second release frees nothing
		before := len(s.times())
		elapse(100 * ms)
		if n := len(s.times()) - before; n != 1 {
			t.Errorf("%d attempts after the place was given up, want 1", n)
		}
	})
}

// If the only waiter gives up during its first attempt after a release that counted on it, the
// first waiter at the server is woken.
func TestPlaceOfAnAttemptThatIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue = true
		l := wrap(t, s, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		ctx, cancel := context.WithCancel(t.Context())
		second := s.begin(ctx, l, locker.Request{})
		elapse(10 * ms)
		synctest.Wait()
		s.latency = 10 * ms
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		elapse(ms)
		cancel()
		synctest.Wait()
		if !errors.Is(second.err, context.Canceled) {
			t.Errorf("the waiter that gave up: %v", second.err)
		}
		if len(s.releases) != 2 || s.releases[1].Next != lease.NextOther {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// An attempt does not say that the process has no place if a waiter that gave up may have left one.
func TestPlaceOfAWaiterThatGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.others = true, lease.OthersNone
		l := wrap(t, s, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 10 * ms})
		match(t, err, []error{locker.ErrMaxWait}, nil)
		s.ask = hang
		second := s.begin(t.Context(), l, locker.Request{})
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if second.lock == nil {
			t.Fatal(second.err)
		}
		waiting := s.waits()
		if last := waiting[len(waiting)-1]; last.ID == "" || last.Free {
			t.Errorf("the last attempt was of %+v", last)
		}
	})
}

// A process that hands the lock over to its last waiter keeps no place at the server.
func TestPlaceOfAHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		process := func(cfg retry.Config) locker.Locker {
			return wrap(t, locker.Must(single.New(clients.OpenMemory(t, m), single.Config{Fair: true})), cfg)
		}
		s := newServer() // for begin
		other, ours, theirs := process(retry.Config{}), process(retry.Config{HandOver: time.Second}), process(retry.Config{})
		held := locker.Must(other.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute}))
		var waiters []*result
		for _, l := range []locker.Locker{ours, ours, theirs} {
			waiters = append(waiters, s.begin(t.Context(), l, locker.Request{Name: name, TTL: time.Minute}))
			elapse(10 * ms)
		}
		match(t, held.Release(t.Context()), nil, nil)
		for i, w := range waiters {
			elapse(ms)
			synctest.Wait()
			if w.lock == nil {
				t.Fatalf("waiter %d has no lock: %v", i, w.err)
			}
			match(t, w.lock.Release(t.Context()), nil, nil)
		}
		elapse(2 * time.Second)
	})
}

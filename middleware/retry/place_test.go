package retry_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// A waiter that comes while the process gives up its place tries again afterwards: the place may be
// its own.
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
		check.OK(t, lock.Release(t.Context()))
		synctest.Wait()
		s.hold()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		s.begin(ctx, l, locker.Request{})
		elapse(50 * ms)
		s.mute = true // the second release frees nothing
		before := len(s.times())
		elapse(100 * ms)
		check.Equal(t, "attempts after the place was given up", len(s.times())-before, 1)
	})
}

// leaving is a Locker with a server slow to remove a place.
type leaving struct{ *server }

func (l leaving) Leave(_, _ string, left func()) { time.AfterFunc(100*ms, left) }

// A waiter that comes during the removal of an earlier waiter's place tries again afterwards.
func TestWaiterThatComesWhileAPlaceIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.fair, s.lease = true, true, time.Hour
		l := wrap(t, leaving{s}, retry.Config{})
		s.hold()
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{})
		elapse(10 * ms)
		cancel()
		synctest.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		s.begin(ctx, l, locker.Request{})
		elapse(50 * ms)
		before := len(s.times())
		elapse(100 * ms)
		check.Equal(t, "attempts after the place was removed", len(s.times())-before, 1)
	})
}

// leavers is a Locker that records the leaving waiters.
type leavers struct {
	*server
	ids *[]string
}

func (l leavers) Leave(_, id string, left func()) { *l.ids = append(*l.ids, id); left() }

// The place that an attempt passes on is removed if the next waiter gave up during the attempt. Otherwise
// no command is sent for it.
func TestPlaceIsPassedOnToNobody(t *testing.T) {
	bubbles(t, map[string]int{"the next one waits": 0, "it gives up": 1}, func(t *testing.T, s *server, left int) {
		s.queue, s.fair = true, true
		var ids []string
		l := wrap(t, leavers{s, &ids}, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		elapse(ms)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		second := s.begin(ctx, l, locker.Request{})
		check.Advance(100 * ms)
		s.latency = 10 * ms
		s.free(other)
		elapse(ms)
		if left > 0 {
			cancel()
		}
		check.Advance(10 * ms)
		first.mustLock(t)
		check.Equal(t, "places removed", len(ids), left)
		check.OK(t, first.lock.Release(t.Context()))
		check.Advance(100 * ms)
		if left == 0 {
			second.mustLock(t)
			check.OK(t, second.lock.Release(t.Context()))
		}
		check.Equal(t, "places removed in all", len(ids), left)
	})
}

// slow is a Locker whose holds come late: arrives runs between an acquire at the server and its answer.
type slow struct {
	locker.Locker
	arrives func()
}

func (l slow) Unwrap() locker.Locker { return l.Locker }

func (l slow) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := l.Locker.Acquire(ctx, req)
	if err == nil {
		l.arrives()
	}
	return lock, err
}

// A waiter that gives up while the one ahead of it acquires keeps no other process out of a semaphore.
func TestGivesUpBehindAnAcquire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, s := clients.NewMemory(t), newServer()
		process := func() locker.Locker {
			return locker.Must(semaphore.New(clients.OpenMemory(t, m), semaphore.Config{Permits: 2}))
		}
		held := locker.Must(process().Acquire(t.Context(), locker.Request{Name: name, Permits: 2}))
		ctx, cancel := context.WithCancel(t.Context())
		here := wrap(t, slow{process(), func() { cancel(); elapse(ms) }}, retry.Config{})
		var waiters []*result
		for _, w := range []struct {
			ctx context.Context //nolint:containedctx // of the case
			l   locker.Locker
		}{{t.Context(), here}, {ctx, here}, {t.Context(), wrap(t, process(), retry.Config{})}} {
			waiters = append(waiters, s.begin(w.ctx, w.l, locker.Request{}))
			elapse(100 * ms)
		}
		check.OK(t, held.Release(t.Context()))
		check.Advance(50 * ms)
		check.Is(t, waiters[1].err, context.Canceled)
		for _, w := range []*result{waiters[0], waiters[2]} {
			w.mustLock(t)
			check.OK(t, w.lock.Release(t.Context()))
		}
	})
}

// If the waiters of a process give up after a release that counted on them, its readers leave too.
func TestReadersThatLeaveAfterARelease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.fair, s.ordered = true, true, true
		var ids []string
		l := wrap(t, leavers{s, &ids}, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		writing, stop := context.WithCancel(t.Context())
		reading, cancel := context.WithCancel(t.Context())
		s.begin(writing, l, locker.Request{})
		s.begin(reading, l, locker.Request{Mode: locker.Shared})
		check.Advance(10 * ms)
		s.latency = 10 * ms
		check.OK(t, lock.Release(t.Context()))
		elapse(ms)
		stop()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !slices.Contains(ids, "") {
			t.Errorf("these left: %q", ids)
		}
	})
}

// Once the last reader of a process has given up, the process stops listening for the readers'
// wake-up: the server would count it as a reader.
func TestReaderThatGivesUpDoesNotListen(t *testing.T) {
	bubbles(t, map[string]bool{"subscribed": false, "subscribing": true}, func(t *testing.T, s *server, slow bool) {
		s.queue, s.fair, s.ordered = true, true, true
		l := wrap(t, s, retry.Config{})
		s.hold()
		writing, stop := context.WithCancel(t.Context())
		defer stop()
		s.begin(writing, l, locker.Request{})
		elapse(10 * ms)
		if slow {
			s.ask = func(context.Context, int) error { elapse(10 * ms); return nil }
		}
		reading, cancel := context.WithCancel(t.Context())
		s.begin(reading, l, locker.Request{Mode: locker.Shared})
		synctest.Wait()
		elapse(ms)
		cancel()
		elapse(20 * ms)
		check.Equal(t, "subscriptions without a reader", s.open(), 1)
		s.begin(writing, l, locker.Request{Mode: locker.Shared})
		elapse(2 * time.Second)
		check.Equal(t, "subscriptions with a new reader", s.open(), 2)
	})
}

// So does a process whose last reader has acquired the lock.
func TestReaderThatGotInDoesNotListen(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.fair, s.ordered = true, true, true
		l := wrap(t, s, retry.Config{})
		h := s.hold()
		writing, stop := context.WithCancel(t.Context())
		defer stop()
		s.begin(writing, l, locker.Request{})
		reader := s.begin(t.Context(), l, locker.Request{Mode: locker.Shared})
		elapse(10 * ms)
		check.Equal(t, "subscriptions with a reader", s.open(), 2)
		s.answer = func(_ int, req locker.Request) error {
			if req.Mode == locker.Exclusive {
				return s.refusal(h)
			}
			return nil
		}
		s.free(h)
		elapse(time.Second)
		synctest.Wait()
		reader.mustLock(t)
		check.Equal(t, "subscriptions without a waiting reader", s.open(), 1)
	})
}

// If the next waiter, which got the place, gives up, the one behind it takes it over at once, with the
// begin of its own wait.
func TestPlaceOfTheNextThatGivesUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.fair = true, true
		l := wrap(t, s, retry.Config{})
		other := s.hold()
		first := s.begin(t.Context(), l, locker.Request{})
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx, l, locker.Request{})
		elapse(ms)
		third, entered := s.begin(t.Context(), l, locker.Request{}), time.Now()
		s.free(other)
		synctest.Wait()
		first.mustLock(t)
		cancel()
		synctest.Wait()
		waiting := s.waits()
		if last := waiting[len(waiting)-1]; !last.Since.Equal(entered) {
			t.Errorf("the latest attempt has waited since %v, want %v", last.Since, entered)
		}
		check.OK(t, first.lock.Release(t.Context()))
		elapse(time.Second)
		synctest.Wait()
		third.mustLock(t)
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
		check.Advance(10 * ms)
		s.latency = 10 * ms
		check.OK(t, lock.Release(t.Context()))
		elapse(ms)
		cancel()
		synctest.Wait()
		check.Is(t, second.err, context.Canceled)
		if len(s.releases) != 2 || !s.releases[1].WaiterLeft {
			t.Errorf("the releases were %+v, want one for a waiter here, and one for others", s.releases)
		}
	})
}

// An attempt does not report the process as without a place if an earlier waiter may have left one.
func TestPlaceOfAWaiterThatGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		s.queue, s.result = true, lease.Result{Alone: true}
		l := wrap(t, s, retry.Config{})
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 10 * ms})
		check.Is(t, err, locker.ErrMaxWait)
		s.ask = hang
		second := s.begin(t.Context(), l, locker.Request{})
		check.OK(t, lock.Release(t.Context()))
		synctest.Wait()
		second.mustLock(t)
		waiting := s.waits()
		if last := waiting[len(waiting)-1]; last.ID == "" || last.Free {
			t.Errorf("the last attempt was of %+v", last)
		}
	})
}

//realtime:ok each test runs in a bubble, by bubble or bubbles

package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// hang is a subscribe that never returns.
func hang(ctx context.Context, _ int) error {
	<-ctx.Done()
	return ctx.Err()
}

// late returns a subscribe that takes d and ignores its ctx.
func late(d time.Duration) func(context.Context, int) error {
	return func(context.Context, int) error { elapse(d); return nil }
}

// After a failure a queue subscribes again, once a second at most.
func TestSubscribingAgain(t *testing.T) {
	thrice := func(err error) func(context.Context, int) error {
		return func(_ context.Context, n int) error {
			if n < 3 {
				return err
			}
			return nil
		}
	}
	type test struct {
		ask  func(ctx context.Context, asking int) error
		want []time.Duration
	}
	bubbles(t, map[string]test{
		"transient failures": {thrice(errors.New("connection refused")), []time.Duration{0, 1400 * ms, 2800 * ms, 4200 * ms}},
		"not permitted for a while": {
			thrice(&driver.ServerError{Text: "NOPERM no channels for you"}), []time.Duration{0, 1400 * ms, 2800 * ms, 4200 * ms},
		},
		"a subscribe that hangs is given up": {func(ctx context.Context, n int) error {
			if n < 2 {
				return hang(ctx, n)
			}
			return nil
		}, []time.Duration{0, 5600 * ms, 11200 * ms}},
		"subscribed at once": {nil, []time.Duration{0}},
	}, func(t *testing.T, s *server, tt test) {
		s.ask = tt.ask
		s.hold()
		l := wrap(t, s, retry.Config{Policy: constant(700 * ms)})
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 20 * time.Second})
		check.Is(t, err, locker.ErrMaxWait, locker.ErrNotAcquired)
		check.EqualSlices(t, "askings", s.askings(), tt.want)
	})
}

// One subscription serves a queue while it has waiters, whichever waiter is its head.
func TestOneSubscriptionForAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
		h := s.hold()
		ctx, cancel := context.WithCancel(t.Context())
		first := s.begin(ctx, l, locker.Request{})
		second := s.begin(t.Context(), l, locker.Request{})
		third := s.begin(t.Context(), l, locker.Request{})
		check.Equal(t, "subscriptions", s.open(), 1)
		cancel()
		first.wantError(t, 0, context.Canceled, locker.ErrNotAcquired)
		elapse(time.Second)
		s.free(h)
		second.wantLock(t, time.Second)
		check.Equal(t, "subscriptions while one waits", s.open(), 1)
		check.OK(t, second.lock.Release(t.Context()))
		third.wantLock(t, time.Second)
		check.Equal(t, "subscriptions after the last waiter", s.open(), 0)
		check.EqualSlices(t, "askings", s.askings(), []time.Duration{0})
		l2 := s.begin(t.Context(), l, locker.Request{MaxWait: time.Second})
		elapse(time.Second)
		l2.wantError(t, 2*time.Second, locker.ErrMaxWait)
		check.EqualSlices(t, "askings", s.askings(), []time.Duration{0, time.Second})
	})
}

// If the subscribing waiter leaves before the reply, the others get the subscription. If the last
// waiter leaves, nobody does.
func TestLeavingWhileSubscribing(t *testing.T) {
	t.Parallel()
	t.Run("others stay", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			s.ask = func(ctx context.Context, _ int) error {
				select {
				case <-time.After(3 * time.Second):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			h := s.hold()
			l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			first := s.begin(ctx, l, locker.Request{})
			second := s.begin(t.Context(), l, locker.Request{})
			elapse(4 * time.Second)
			first.wantError(t, time.Second, context.Canceled)
			s.free(h)
			second.wantLock(t, 4*time.Second)
			check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, time.Second, 3 * time.Second, 4 * time.Second})
			check.EqualSlices(t, "askings", s.askings(), []time.Duration{0})
		})
	})
	t.Run("nobody stays", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			var ended time.Duration
			s.ask = func(ctx context.Context, n int) error {
				err := hang(ctx, n)
				ended = time.Since(s.start)
				return err
			}
			s.hold()
			l := wrap(t, s, retry.Config{})
			s.begin(t.Context(), l, locker.Request{MaxWait: time.Second})
			check.Advance(10 * time.Second)
			check.Equal(t, "end of the asking", ended, time.Second)
		})
	})
	t.Run("nobody stays, and the answer comes after all", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *server) {
			s.ask = late(3 * time.Second) // it ignores its ctx
			s.hold()
			l := wrap(t, s, retry.Config{})
			first := s.begin(t.Context(), l, locker.Request{MaxWait: time.Second})
			elapse(4 * time.Second)
			first.wantError(t, time.Second, locker.ErrMaxWait)
		})
	})
}

// A refusal may name another channel than the one before, as a quorum's does. The queue listens to
// the last one, but does not switch with every refusal.
func TestTheChannelChanges(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		channels := []string{"a", "b", "a", "b", "c", "c", "c", "c"}
		s.answer = func(n int, _ locker.Request) error {
			if n >= len(channels) {
				return nil
			}
			return &locker.ContentionError{Name: name, Hint: lease.Hint{Channel: driver.NewChannel(s, channels[n])}}
		}
		l := wrap(t, s, retry.Config{Policy: constant(400 * ms)})
		locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		check.EqualSlices(t, "attempts", s.times(), []time.Duration{0, 0, 400 * ms, 800 * ms, 1200 * ms, 1200 * ms, 1600 * ms, 2000 * ms, 2400 * ms})
		check.EqualSlices(t, "askings", s.askings(), []time.Duration{0, 1200 * ms})
	})
}

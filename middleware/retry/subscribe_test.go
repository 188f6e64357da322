package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// hang is a subscribe that never returns.
func hang(ctx context.Context, _ int) error {
	<-ctx.Done()
	return ctx.Err()
}

// late returns a subscribe that takes d, whatever its ctx says.
func late(d time.Duration) func(context.Context, int) error {
	return func(context.Context, int) error { elapse(d); return nil }
}

// A queue subscribes again, at most once a second, if the failure may be temporary, and never if it
// is permanent.
func TestSubscribingAgain(t *testing.T) {
	t.Parallel()
	refused := &driver.ServerError{Text: "NOPERM no channels for you"}
	tests := []struct {
		name string
		ask  func(ctx context.Context, asking int) error
		want []time.Duration
	}{
		{"transient failures", func(_ context.Context, n int) error {
			if n < 3 {
				return errors.New("connection refused")
			}
			return nil
		}, []time.Duration{0, 1400 * ms, 2800 * ms, 4200 * ms}},
		{"a subscribe that hangs is given up", func(ctx context.Context, n int) error {
			if n < 2 {
				return hang(ctx, n)
			}
			return nil
		}, []time.Duration{0, 5600 * ms, 11200 * ms}},
		{"not permitted", func(context.Context, int) error { return refused }, []time.Duration{0}},
		{"no such thing", func(context.Context, int) error { return errors.ErrUnsupported }, []time.Duration{0}},
		{"subscribed at once", nil, []time.Duration{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				s.ask = tt.ask
				s.hold()
				l := wrap(t, s, retry.Config{Policy: constant(700 * ms)})
				_, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 20 * time.Second})
				match(t, err, []error{locker.ErrMaxWait, locker.ErrNotAcquired}, nil)
				equal(t, "askings", s.askings(), tt.want)
			})
		})
	}
}

// One subscription serves a queue for as long as it has waiters, and no longer, whichever waiter is
// its head.
func TestOneSubscriptionForAQueue(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := wrap(t, s, retry.Config{Policy: constant(time.Minute)})
		h := s.hold()
		ctx, cancel := context.WithCancel(t.Context())
		first := s.begin(ctx, l, locker.Request{})
		second := s.begin(t.Context(), l, locker.Request{})
		third := s.begin(t.Context(), l, locker.Request{})
		if s.open() != 1 {
			t.Errorf("%d subscriptions, want 1", s.open())
		}
		cancel()
		first.wantError(t, 0, context.Canceled, locker.ErrNotAcquired)
		elapse(time.Second)
		s.free(h)
		second.wantLock(t, time.Second)
		if s.open() != 1 {
			t.Errorf("%d subscriptions while one waits, want 1", s.open())
		}
		if err := second.lock.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
		third.wantLock(t, time.Second)
		if s.open() != 0 {
			t.Errorf("%d subscriptions after the last waiter, want 0", s.open())
		}
		equal(t, "askings", s.askings(), []time.Duration{0})
		l2 := s.begin(t.Context(), l, locker.Request{MaxWait: time.Second})
		elapse(time.Second)
		l2.wantError(t, 2*time.Second, locker.ErrMaxWait)
		equal(t, "askings", s.askings(), []time.Duration{0, time.Second})
	})
}

// If the waiter that subscribes leaves before the reply, the others get the subscription. If the
// last waiter leaves, no one does.
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
			equal(t, "attempts", s.times(), []time.Duration{0, time.Second, 3 * time.Second, 4 * time.Second})
			equal(t, "askings", s.askings(), []time.Duration{0})
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
			elapse(10 * time.Second)
			synctest.Wait()
			if ended != time.Second {
				t.Errorf("the asking ended after %v, want 1s", ended)
			}
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
			return &locker.ContentionError{Name: name, Channel: driver.NewChannel(s, channels[n])}
		}
		l := wrap(t, s, retry.Config{Policy: constant(400 * ms)})
		if _, err := l.Acquire(t.Context(), locker.Request{Name: name}); err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		equal(t, "attempts", s.times(), []time.Duration{0, 0, 400 * ms, 800 * ms, 1200 * ms, 1200 * ms, 1600 * ms, 2000 * ms, 2400 * ms})
		equal(t, "askings", s.askings(), []time.Duration{0, 1200 * ms})
	})
}

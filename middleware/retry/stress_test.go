package retry_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Readers and writers in real time and in parallel, many of them giving up at any instant: nobody
// holds beside a writer, nobody is forgotten in a queue, and nothing stays behind.
func TestGivingUpAtAnyInstant(t *testing.T) {
	t.Parallel()
	for name, ordered := range map[string]bool{"in one line": false, "in two lines": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.ordered = ordered
			giveUpAtAnyInstant(t, s)
		})
	}
}

func giveUpAtAnyInstant(t *testing.T, s *server) {
	t.Helper()
	l := wrap(t, s, retry.Config{})
	ctx := t.Context()
	var wg sync.WaitGroup
	var readers, writers, acquired, gaveUp atomic.Int64
	for range 32 {
		wg.Go(func() {
			for range 100 {
				req := locker.Request{Name: name}
				if rand.N(3) == 0 {
					req.Mode = locker.Shared
				}
				if rand.N(8) == 0 {
					req.Owner = "me"
				}
				if rand.N(2) == 0 {
					req.MaxWait = rand.N(time.Millisecond) + 1
				}
				err := locker.Do(ctx, l, req, func(context.Context, *locker.Lock) error {
					mine, others := &writers, &readers
					if req.Mode == locker.Shared {
						mine, others = others, mine
					}
					defer mine.Add(-1)
					if n := mine.Add(1); others.Load() != 0 || n > 1 && req.Mode == locker.Exclusive {
						t.Errorf("%d %v are in, and %d others", n, req.Mode, others.Load())
					}
					if rand.N(50) == 0 {
						<-time.After(2 * time.Millisecond) // longer than any MaxWait, so some give up
					}
					return nil
				})
				switch {
				case err == nil:
					acquired.Add(1)
				case errors.Is(err, locker.ErrMaxWait):
					gaveUp.Add(1)
				default:
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if acquired.Load() == 0 || gaveUp.Load() == 0 {
		t.Errorf("%d acquired, %d gave up; want some of both", acquired.Load(), gaveUp.Load())
	}
	check.Eventually(t, "no subscription is left", func() bool { return s.open() == 0 })
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: name}))
	check.OK(t, lock.Release(ctx))
}

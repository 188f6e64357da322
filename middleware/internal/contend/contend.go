// Package contend runs crowds of callers that contend for one lock, in the tests of the middlewares
// that wait. Only tests import it.
package contend

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
)

// GiveUp makes requests in real time and in parallel, half of which give up within a millisecond.
// It fails the test if anybody holds beside a writer, or if the lock is not free in the end.
func GiveUp(t *testing.T, l locker.Locker, request func() locker.Request) {
	t.Helper()
	var wg sync.WaitGroup
	var readers, writers, acquired, gaveUp atomic.Int64
	for range 32 {
		wg.Go(func() {
			for range 100 {
				req := request()
				if rand.N(2) == 0 {
					req.MaxWait = rand.N(time.Millisecond) + 1
				}
				err := locker.Do(t.Context(), l, req, func(context.Context, *locker.Lock) error {
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
				case errors.Is(err, locker.ErrMaxWait), req.NoWait && errors.Is(err, locker.ErrNotAcquired):
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
	lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: request().Name}))
	check.OK(t, lock.Release(t.Context()))
}

// Processes has three processes, made by process, take turns at a lock in a bubble of fake time. It
// fails the test unless one caller holds at a time, each gets its turns, and the tokens increase.
func Processes(t *testing.T, name string, process func() locker.Locker) {
	t.Helper()
	const processes, workers, rounds = 3, 8, 4
	var wg sync.WaitGroup
	inside, turns, last := 0, 0, int64(0)
	for range processes {
		l := process()
		for range workers {
			wg.Go(func() {
				for range rounds {
					req := locker.Request{Name: name, Fenced: true}
					err := locker.Do(t.Context(), l, req, func(_ context.Context, lock *locker.Lock) error {
						if inside++; inside != 1 || lock.Fence() <= last {
							t.Errorf("%d are inside, fence %d after %d", inside, lock.Fence(), last)
						}
						last = lock.Fence()
						<-time.After(10 * time.Millisecond)
						turns++
						inside--
						return nil
					})
					check.OK(t, err)
				}
			})
		}
	}
	wg.Wait()
	check.Equal(t, "turns", turns, processes*workers*rounds)
}

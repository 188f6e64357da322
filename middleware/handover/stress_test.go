package handover_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Requests of all kinds in real time and in parallel, many of them giving up at any instant: one
// holds at a time, and nothing stays behind.
func TestGivingUpAtAnyInstant(t *testing.T) {
	t.Parallel()
	server := lockertest.New()
	l := handingOver(server, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // far beyond the time needed
	defer cancel()
	var wg sync.WaitGroup
	var writers, readers, acquired, gaveUp atomic.Int64
	for range 32 {
		wg.Go(func() {
			for range 100 {
				req := locker.Request{Name: name, Fenced: rand.N(2) == 0}
				switch rand.N(16) {
				case 0:
					req.Owner = "me"
				case 1:
					req.NoWait = true
				case 2:
					req.Mode = locker.Shared
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
					return nil
				})
				switch {
				case err == nil:
					acquired.Add(1)
				case errors.Is(err, locker.ErrMaxWait), errors.Is(err, locker.ErrNotAcquired):
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
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: name}))
	check.OK(t, lock.Release(ctx))
	if state := locker.Must(server.Inspect(ctx, name)); state.Held {
		t.Errorf("it is held: %+v", state)
	}
}

// Competing processes at a server: one holds at a time, all get turns, and the tokens increase.
func TestProcesses(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		const processes, workers, rounds = 3, 8, 4
		m := clients.NewMemory(t)
		var wg sync.WaitGroup
		inside, turns, last := 0, 0, int64(0)
		for range processes {
			l := handingOver(locker.Must(single.New(clients.OpenMemory(t, m), single.Config{})), 50*ms)
			for range workers {
				wg.Go(func() {
					for range rounds {
						err := locker.Do(t.Context(), l, locker.Request{Name: name, Fenced: true}, func(_ context.Context, lock *locker.Lock) error {
							if inside++; inside != 1 || lock.Fence() <= last {
								t.Errorf("%d are inside, fence %d after %d", inside, lock.Fence(), last)
							}
							last = lock.Fence()
							elapse(10 * ms)
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
	})
}

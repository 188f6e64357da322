package redlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Many contend through retry: none starves, and the lock changes hands without long gaps.
func TestContendersProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer sleep(time.Hour)
		c := overHooked(t, 5, redlock.Config{})
		for _, n := range c.n {
			n.hook(func(string) error { sleep(time.Duration(500+rand.IntN(4500)) * time.Microsecond); return nil }, nil)
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 4 { // processes, each with its own queue
			l := locker.Chain(c.Locker, locker.Must(retry.New(retry.Config{})))
			for range 3 {
				wg.Go(func() {
					for range 5 {
						lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl})
						if err != nil {
							t.Errorf("acquire: %v", err)
							return
						}
						sleep(20 * ms)
						match(t, lock.Release(t.Context()))
					}
				})
			}
		}
		wg.Wait()
		t.Logf("60 holds of 20 ms took %v", time.Since(start))
		if took := time.Since(start); took > time.Minute {
			t.Errorf("60 holds of 20 ms took %v", took)
		}
	})
}

// Random histories with delays, errors, lost answers, cancelled callers: never two hold, and
// nothing is left behind.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	var total atomic.Int64
	for seed := range effort.Of[uint64](10, 30, 60) {
		for _, n := range []int{1, 2, 3, 4, 5} {
			synctest.Test(t, func(t *testing.T) { history(t, seed, n, &total) })
		}
	}
	t.Logf("%d locks", total.Load())
}

func history(t *testing.T, seed uint64, n int, total *atomic.Int64) {
	t.Helper()
	const lease = time.Second
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	upTo := func(k int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(k)
	}
	c := overHooked(t, n, redlock.Config{TTL: lease, AttemptTimeout: 150 * ms})
	var stop atomic.Bool
	for i := range c.n {
		disturb := func(what string) error {
			switch {
			case stop.Load():
			case upTo(4) == 0:
				sleep(time.Duration(upTo(120)) * ms)
			case upTo(40) == 0:
				sleep(time.Duration(upTo(3000)) * ms)
			}
			if !stop.Load() && upTo(25) == 0 {
				return fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
			}
			return nil
		}
		c.n[i].hook(disturb, disturb)
	}
	var holders []*locker.Lock
	last := int64(0)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for range 25 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+upTo(400))*ms)
				lock, err := c.Acquire(ctx, locker.Request{Name: name, Owner: fmt.Sprint(w), Fenced: seed%2 == 0})
				cancel()
				if err != nil {
					sleep(time.Duration(upTo(300)) * ms)
					continue
				}
				mu.Lock()
				if lock.Err() == nil {
					for _, h := range holders {
						if h.Err() == nil {
							t.Errorf("seed %d, %d nodes: %s and %s hold at once", seed, n, h.Owner(), lock.Owner())
						}
					}
					if f := lock.Fence(); f != 0 && f <= last {
						t.Errorf("seed %d, %d nodes: fence %d after %d", seed, n, f, last)
					} else {
						last = f
					}
				}
				holders = append(holders, lock)
				mu.Unlock()
				for lock.Err() == nil && upTo(6) > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+upTo(300))*ms)
					var wg sync.WaitGroup
					for range 1 + upTo(2) {
						wg.Go(func() { _ = lock.Renew(ctx, time.Duration(300+upTo(2000))*ms) })
					}
					wg.Wait()
					cancel()
					sleep(time.Duration(upTo(300)) * ms)
				}
				if upTo(5) > 0 {
					_ = lock.Release(t.Context())
				} else {
					for lock.Err() == nil {
						sleep(50 * ms)
					}
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	won := len(holders)
	mu.Unlock()
	total.Add(int64(won))
	stop.Store(true)
	sleep(2 * time.Minute)
	for i, node := range c.n {
		if s, _ := node.Inspect(bg, name); s.Held {
			t.Errorf("seed %d: node %d of %d is still held by %q", seed, i, n, s.Owner)
		}
	}
}

// Every operation at once on one Lock, with disturbed nodes: no race, no hang, nothing left behind.
func TestAllOperationsAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](20, 50, 100) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 7))
			upTo := func(k int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(k)
			}
			c := overHooked(t, 3, redlock.Config{})
			var calm atomic.Bool
			calm.Store(true)
			for i := range c.n {
				c.n[i].hook(func(string) error {
					if !calm.Load() {
						sleep(time.Duration(upTo(1500)) * ms)
						switch upTo(12) {
						case 0:
							return errDown
						case 1:
							return fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
						case 2:
							c.n[i].Forget(name)
						}
					}
					return nil
				}, nil)
			}
			lock, err := c.Acquire(t.Context(), locker.Request{Name: name, TTL: 10 * time.Second, Mode: locker.Shared, Fenced: seed%2 == 0})
			if err == nil {
				calm.Store(false)
				var wg sync.WaitGroup
				for range 6 {
					wg.Go(func() {
						for range 12 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(upTo(2000))*ms)
							switch upTo(12) {
							case 0, 1, 2, 3:
								_ = lock.Renew(ctx, 0)
							case 4:
								_ = lock.Renew(ctx, time.Minute)
							case 5, 6:
								_ = lock.Upgrade(ctx)
							case 7, 8:
								_ = lock.Downgrade(ctx)
							case 9:
								_ = lock.Handle().Encode()
							case 10:
								_, _, _ = lock.Mode(), lock.Deadline(), lock.String()
							case 11:
								if upTo(8) == 0 {
									_ = lock.Release(ctx)
								}
							}
							cancel()
							sleep(time.Duration(upTo(700)) * ms)
						}
					})
				}
				wg.Wait()
				calm.Store(true)
				_ = lock.Release(t.Context())
			}
			calm.Store(true)
			sleep(2 * time.Minute)
			for i, n := range c.n {
				if s, _ := n.Inspect(bg, name); s.Held {
					t.Errorf("seed %d: node %d is still held", seed, i)
				}
			}
		})
	}
}

//nolint:forbidigo // fake time
package clientgo_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// At most one candidate leads at any time, and fencing tokens increase, whatever happens to the
// candidates and the server. Each candidate leads at some time.
func TestHistory(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](2, 4, 50) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := lockertest.New()
				h := play(t, seed, server, func(int) locker.Locker { return server })
				for _, v := range h.violations {
					t.Error(v)
				}
				for i, terms := range h.terms {
					if terms == 0 {
						t.Errorf("candidate %d has never led", i)
					}
				}
			})
		})
	}
}

// A check that finds nothing in elections that are none is worth nothing.
func TestHistoryFindsFlaws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := lockertest.New()
		if h := play(t, 1, server, func(int) locker.Locker { return lockertest.New() }); len(h.violations) == 0 {
			t.Error("it finds nothing although each candidate has a lock of its own")
		}
	})
}

// history is what a run of candidates left.
type history struct {
	mu         sync.Mutex
	last       term // that began last
	terms      []int
	violations []string
}

// begin records a term of candidate i.
func (h *history) begin(i int, now term) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.terms[i]++
	if last := h.last.hold; last != nil && last.Err() == nil {
		h.violations = append(h.violations, fmt.Sprintf("%v began while %v lasted", now.hold, last))
	} else if last != nil && now.hold.Fence() <= last.Fence() {
		h.violations = append(h.violations, fmt.Sprintf("%v began after %v", now.hold, last))
	}
	if h.last.ctx != nil && h.last.ctx.Err() == nil {
		h.violations = append(h.violations, fmt.Sprintf("%v began while the ctx of %v lasted", now.hold, h.last.hold))
	}
	h.last = now
}

// play lets candidates campaign for half an hour, each over what open returns. They stop and start
// again at random, with and without a release, while the server fails at random.
func play(t *testing.T, seed uint64, server *lockertest.Locker, open func(i int) locker.Locker) *history {
	t.Helper()
	const candidates = 5
	h, until := &history{terms: make([]int, candidates)}, time.Now().Add(30*time.Minute)
	var all sync.WaitGroup
	for i := range candidates {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		lock := newLock(t, open(i), fmt.Sprint("candidate ", i))
		all.Go(func() {
			for time.Now().Before(until) {
				cfg := timing
				cfg.ReleaseOnCancel = rnd.IntN(3) > 0
				c := run(t, lock, cfg)
				h.watch(i, c, random(rnd, 2*time.Minute))
				time.Sleep(random(rnd, 20*time.Second))
			}
		})
	}
	all.Go(func() {
		rnd := rand.New(rand.NewPCG(seed, candidates))
		for time.Now().Before(until) {
			time.Sleep(random(rnd, 3*time.Minute))
			server.SetOutage(lockertest.Outage(rnd.IntN(3)))
			time.Sleep(random(rnd, 30*time.Second))
			server.SetOutage(lockertest.NoOutage)
			if rnd.IntN(3) == 0 {
				server.Expire("controller")
			}
		}
	})
	all.Wait()
	return h
}

// watch records the terms of c for d, or until it stops, and then stops it.
func (h *history) watch(i int, c *candidate, d time.Duration) {
	enough := time.NewTimer(d)
	defer enough.Stop()
	for {
		select {
		case began := <-c.terms:
			h.begin(i, began)
		case <-c.stopped:
			return
		case <-enough.C:
			c.stop()
			return
		}
	}
}

// random returns a duration below limit.
func random(rnd *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(limit)))
}

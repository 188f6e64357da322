package rwhash_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

const crowdTurn = time.Second // Config.WriterTurn

// crowd is as many readers as writers, without pauses, in a number of processes.
type crowd struct {
	each      int // of readers, and of writers
	processes int
	lasts     time.Duration

	mu      sync.Mutex
	holding [2]int
	turns   [2]int
	longest [2]time.Duration // wait of one
	gap     [2]time.Duration // between two turns of the mode
	last    [2]time.Time
}

// entered records a waiter's acquire.
func (c *crowd) entered(t *testing.T, mode locker.Mode, waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding[mode]++
	if w := c.holding[locker.Exclusive]; w > 1 || w == 1 && c.holding[locker.Shared] > 0 {
		t.Errorf("%d writers and %d readers hold", w, c.holding[locker.Shared])
	}
	now := time.Now()
	c.turns[mode]++
	c.longest[mode], c.gap[mode] = max(c.longest[mode], waited), max(c.gap[mode], now.Sub(c.last[mode]))
	c.last[mode] = now
}

func (c *crowd) leaves(mode locker.Mode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding[mode]--
}

// run has every client of the crowd hold for 10 to 100 ms at a time.
func (c *crowd) run(t *testing.T, m *memredis.Server) {
	n := c.each
	var wg sync.WaitGroup
	start := time.Now()
	c.last = [2]time.Time{start, start}
	for p := range c.processes {
		bare := locker.Must(rwhash.New(clients.OpenMemory(t, m), rwhash.Config{WriterTurn: crowdTurn}))
		l := locker.Chain(bare, locker.Must(retry.New(retry.Config{})))
		for i := p; i < 2*n; i += c.processes {
			mode := modes[i/n]
			wg.Go(func() {
				for turn := 0; time.Since(start) < c.lasts; turn++ {
					wants := time.Now()
					lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Mode: mode})
					if err != nil {
						t.Error(err)
						return
					}
					c.entered(t, mode, time.Since(wants))
					sleep(time.Duration(10+(7*turn+13*i)%91) * time.Millisecond)
					c.leaves(mode)
					release(t, lock)
				}
			})
		}
	}
	wg.Wait()
}

// No one waits for long, in one process or in many.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	lasts, each := effort.Of(2*time.Second, 2*time.Second, 30*time.Second), effort.Of(8, 8, 16)
	check.EachInFakeTime(t, map[string]int{"one process": 1, "many": 2 * each}, func(t *testing.T, processes int) {
		m := clients.NewMemory(t)
		c := &crowd{each: each, processes: processes, lasts: lasts}
		c.run(t, m)
		for _, mode := range modes {
			t.Logf("%v: %d turns, the longest wait %v, the longest time without any %v", mode, c.turns[mode], c.longest[mode], c.gap[mode])
			check.AtMost(t, "longest wait", c.longest[mode], 5*time.Second) // the holds of 32 take 1.7 s
			check.AtMost(t, "longest time without any", c.gap[mode], crowdTurn)
		}
		sleep(toTry)
		locktest.Gone(t, m, name)
	})
}

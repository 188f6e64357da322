package leader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// At most one leads at any time, one Candidate runs one Lead at a time, and terms increase,
// whatever happens to the Candidates and the network.
func TestHistory(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](2, 3, 150) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := play(t, seed, func(_ int, drv driver.Driver) locker.Locker {
					return locker.Must(single.New(drv, single.Config{}))
				})
				for _, v := range h.violations {
					t.Error(v)
				}
				if h.terms < 5 {
					t.Errorf("there were %d terms", h.terms)
				}
			})
		})
	}
}

// A check that finds nothing in elections that are none is worth nothing.
func TestHistoryFindsFlaws(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]func(i int, drv driver.Driver) locker.Locker{
		"each one has a lock of its own": func(i int, drv driver.Driver) locker.Locker {
			return locker.Must(single.New(drv, single.Config{Prefix: fmt.Sprint(i, ":")}))
		},
		"one of them ends the holds of others": func(i int, drv driver.Driver) locker.Locker {
			l := locker.Must(single.New(drv, single.Config{}))
			if i > 0 {
				return l
			}
			return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				_, _ = drv.Eval(ctx, driver.NewScript("return redis.call('DEL', KEYS[1])"), []string{name}, nil)
				return l.Acquire(ctx, req)
			})
		},
	}, func(t *testing.T, open func(i int, drv driver.Driver) locker.Locker) {
		if h := play(t, 1, open); len(h.violations) == 0 {
			t.Errorf("no violation in %d terms", h.terms)
		}
	})
}

// history is what the Candidates of a play did.
type history struct {
	mu         sync.Mutex
	last       int64 // the latest term
	terms      int
	violations []string
}

// began records a term.
func (h *history) began(who int, term int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if term <= h.last {
		h.violations = append(h.violations, fmt.Sprintf("%d leads in term %d after term %d", who, term, h.last))
	}
	h.last = term
	h.terms++
}

// sound records who says that it leads, and reports whether there was no violation so far.
func (h *history) sound(all []*runner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lead []string
	for i, r := range all {
		if term, leads := r.Term(); leads {
			lead = append(lead, fmt.Sprintf("%d in term %d", i, term))
		}
	}
	if len(lead) > 1 {
		h.violations = append(h.violations, fmt.Sprintf("at once lead %v", lead))
	}
	return len(h.violations) == 0
}

// severed is a driver that can be cut off.
type severed struct {
	driver.Driver
	cuts atomic.Int32 // what cuts it off
}

var errCut = errors.New("the network is gone")

func (s *severed) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if s.cuts.Load() > 0 {
		return false, errCut
	}
	return s.Driver.SetNX(ctx, key, value, ttl)
}

func (s *severed) Eval(ctx context.Context, script *driver.Script, keys, args []string) (driver.Reply, error) {
	if s.cuts.Load() > 0 {
		return driver.Reply{}, errCut
	}
	return s.Driver.Eval(ctx, script, keys, args)
}

// play lets Candidates campaign for two minutes while they are stopped, one or all of them are cut
// off, and Leads fail and hang. It ends sooner after a violation.
func play(t *testing.T, seed uint64, open func(i int, drv driver.Driver) locker.Locker) *history {
	t.Helper()
	const (
		candidates = 4
		ttl        = 2 * time.Second
		step       = 50 * time.Millisecond
	)
	var (
		h       history
		random  = rand.New(rand.NewPCG(seed, 1))
		srv     = clients.NewMemory(t)
		drivers []*severed
		all     []*runner
		running = make([]bool, candidates)
		inside  [candidates]atomic.Int32 // Leads that run
	)
	for i := range candidates {
		drv := &severed{Driver: clients.OpenMemory(t, srv)}
		drivers = append(drivers, drv)
		moods := rand.New(rand.NewPCG(seed, uint64(i)+2))
		all = append(all, run(t, wrap(open(i, drv)), leader.Config{
			TTL: ttl, StopTimeout: ttl, Note: fmt.Sprint(i),
			Lead: func(ctx context.Context, term int64) error {
				h.began(i, term)
				if inside[i].Add(1) > 1 {
					t.Errorf("%d runs Lead twice at once", i)
				}
				defer inside[i].Add(-1)
				mood, pause := moods.IntN(4), time.Duration(moods.Int64N(int64(2*ttl)))
				if mood == 0 {
					time.Sleep(pause) //nolint:forbidigo // fake time
					return errWork
				}
				<-ctx.Done()
				if mood == 1 {
					time.Sleep(pause) //nolint:forbidigo // fake time; it may be too late
				}
				return ctx.Err()
			},
		}))
		running[i] = true
	}
	for elapsed := time.Duration(0); elapsed < 2*time.Minute && h.sound(all); elapsed += step {
		time.Sleep(step) //nolint:forbidigo // fake time
		for i, r := range all {
			if len(r.ended) > 0 { // stopped, or its Lead hangs
				<-r.ended
				running[i] = false
			}
		}
		i := random.IntN(candidates)
		switch n := random.IntN(60); {
		case n < 2:
			all[i].stop()
		case n < 20 && !running[i]:
			all[i].again()
			running[i] = true
		case n == 20 || n == 21:
			cutOff(drivers[i:i+1], time.Duration(random.Int64N(int64(4*ttl))))
		case n == 22:
			cutOff(drivers, time.Duration(random.Int64N(int64(2*ttl))))
		}
	}
	for _, r := range all {
		r.stop()
	}
	time.Sleep(2 * time.Minute) //nolint:forbidigo // fake time: all Leads return, and all is cleaned up
	return &h
}

// cutOff cuts drivers off for d.
func cutOff(drivers []*severed, d time.Duration) {
	for _, drv := range drivers {
		drv.cuts.Add(1)
		time.AfterFunc(d, func() { drv.cuts.Add(-1) })
	}
}

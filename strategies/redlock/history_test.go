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

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// Many contend through retry: none starves, and the lock changes hands without long gaps.
func TestContendersProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer sleep(time.Hour)
		c := overHooked(t, 5, redlock.Config{})
		hookAll(c.n, func(string) error { sleep(time.Duration(500+rand.IntN(4500)) * time.Microsecond); return nil }, nil)
		start := time.Now()
		var wg sync.WaitGroup
		for range 4 { // processes, each with its own queue
			l := locker.Chain(c.Locker, locker.Must(retry.New(retry.Config{})))
			for range 3 {
				wg.Go(func() {
					for range 5 {
						lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl}))
						sleep(20 * ms)
						match(t, lock.Release(t.Context()))
					}
				})
			}
		}
		wg.Wait()
		t.Logf("60 holds of 20 ms took %v", time.Since(start))
		tookAtMost(t, start, time.Minute)
	})
}

// walk is a random history of four clients, with delays, errors, lost answers and cancelled
// callers.
type walk struct {
	*testing.T
	locks locker.Locker
	nodes []*hooked
	stop  atomic.Bool // the disturbances

	modes bool  // readers, conversions and hand-overs too
	cut   error // how a disturbed call fails
	*dice

	mu      sync.Mutex
	holders []*holder
	won     int
	fence   int64 // the highest so far
}

// holder is a Lock and what a user may take it for.
type holder struct {
	*locker.Lock
	hold   int  // which one hold it is of
	shares bool // a downgrade has begun
	passed bool // it was taken over: its Lock is lost, and hears of that later
}

func (w *walk) sleep(upTo time.Duration) { sleep(w.lasts(upTo)) }

// disturb is what may happen to a call, before it is executed or after.
func (w *walk) disturb(string) error {
	switch {
	case w.stop.Load():
		return nil
	case w.upTo(4) == 0:
		w.sleep(120 * ms)
	case w.upTo(40) == 0:
		w.sleep(3 * time.Second)
	}
	if !w.stop.Load() && w.upTo(25) == 0 {
		return w.cut
	}
	return nil
}

// takes records what a Lock is from now on, and demands that no other holder excludes that.
func (w *walk) takes(h *holder, change func()) {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if change != nil {
		change()
	}
	if h.Err() != nil {
		return
	}
	shares := func(h *holder) bool { return h.shares || h.Mode() == locker.Shared }
	for _, other := range w.holders {
		if other.hold != h.hold && !other.passed && other.Err() == nil && (!shares(h) || !shares(other)) {
			w.Errorf("%v (until %v) and %v (until %v) hold at once at %v", other, other.Deadline(), h, h.Deadline(), time.Now())
		}
	}
}

func (w *walk) add(lock *locker.Lock, hold int) *holder {
	h := &holder{Lock: lock, hold: hold}
	w.takes(h, func() {
		w.won++
		if h.hold == 0 {
			h.hold = w.won
		}
		w.holders = append(w.holders, h)
	})
	return h
}

// increases demands that the token of a writer is higher than all before it.
func (w *walk) increases(lock *locker.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if f := lock.Fence(); f != 0 && !w.modes && lock.Err() == nil {
		if f <= w.fence {
			w.Errorf("fence %d after %d", f, w.fence)
		}
		w.fence = max(w.fence, f)
	}
}

// run is one client.
func (w *walk) run(owner string) {
	for range 60 {
		w.sleep(60 * ms)
		req := locker.Request{Name: name, Owner: owner, Fenced: w.upTo(2) == 0}
		if w.modes {
			req.Mode = locker.Mode(w.upTo(2))
		}
		ctx, cancel := context.WithTimeout(w.Context(), time.Duration(1+w.upTo(400))*ms)
		lock, err := w.locks.Acquire(ctx, req)
		cancel()
		if err != nil {
			continue
		}
		h := w.add(lock, 0)
		w.increases(lock)
		for h.Err() == nil && w.upTo(8) > 0 {
			h = w.step(h)
			w.sleep(200 * ms)
		}
		if w.upTo(5) > 0 {
			_ = h.Release(w.Context())
		}
		for h.Err() == nil {
			sleep(50 * ms)
		}
	}
}

// step is one operation of a holder.
func (w *walk) step(h *holder) *holder {
	ctx, cancel := context.WithTimeout(w.Context(), time.Duration(1+w.upTo(400))*ms)
	defer cancel()
	kinds := 3
	if w.modes {
		kinds = 6
	}
	switch 6 - kinds + w.upTo(kinds) {
	case 0:
		if err := h.Upgrade(ctx); err == nil {
			w.takes(h, func() { h.shares = false })
		}
	case 1:
		w.takes(h, func() { h.shares = true })
		if err := h.Downgrade(ctx); err == nil && h.Mode() != locker.Shared {
			w.Errorf("%v after a downgrade", h)
		}
	case 2:
		if lock, err := locker.Resume(ctx, w.locks, h.Handle()); err == nil {
			next := w.add(lock, h.hold)
			w.mu.Lock()
			next.shares, h.passed = h.shares, true
			w.mu.Unlock()
			return next
		}
	default:
		var wg sync.WaitGroup
		for range 1 + w.upTo(2) {
			wg.Go(func() { _ = h.Renew(ctx, time.Duration(300+w.upTo(2000))*ms) })
		}
		wg.Wait()
	}
	return h
}

// quorumOver makes a quorum over n nodes.
func (w *walk) quorumOver(n int, cfg redlock.Config) *redlock.Locker {
	var nodes []locker.Locker
	for range n {
		node := &hooked{Locker: lockertest.New()}
		node.hook(w.disturb, func(what string) error {
			if err := w.disturb(what); what != "resume" { // a strategy undoes one whose answer was lost
				return err
			}
			return nil
		})
		nodes, w.nodes = append(nodes, node), append(w.nodes, node)
	}
	return locker.Must(redlock.New(nodes, cfg))
}

// Random histories of all that a Lock can do: a writer is alone, whatever fails, its tokens
// increase, and nothing is left behind.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	type test struct {
		modes bool
		seeds uint64
	}
	check.Each(t, map[string]test{
		"writers":   {false, effort.Of[uint64](8, 8, 60)},
		"all modes": {true, effort.Of[uint64](1, 1, 8)},
	}, func(t *testing.T, kind test) {
		won := 0
		for seed := range kind.seeds {
			for _, of := range []struct{ n, quorum int }{{1, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3}, {5, 3}} {
				synctest.Test(t, func(t *testing.T) {
					w := &walk{
						T: t, modes: kind.modes, dice: newDice(seed, uint64(of.n*10+of.quorum)),
						cut: fmt.Errorf("cut: %w", locker.ErrUnknownOutcome),
					}
					if seed%2 == 0 {
						w.cut = errDown
					}
					w.locks = w.quorumOver(of.n, redlock.Config{TTL: time.Second, AttemptTimeout: 150 * ms, Quorum: of.quorum})
					var wg sync.WaitGroup
					for i := range 4 {
						wg.Go(func() { w.run(fmt.Sprint(i)) })
					}
					wg.Wait()
					w.stop.Store(true)
					sleep(2 * time.Minute)
					nobodyHolds(t, w.nodes)
					if won += w.won; t.Failed() {
						t.Fatalf("seed %d, %+v", seed, of)
					}
				})
			}
		}
		t.Logf("%d locks", won)
	})
}

// Every operation at once on one Lock, with disturbed nodes: no race, no hang, nothing left behind.
func TestAllOperationsAtOnce(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](20, 20, 100) {
		synctest.Test(t, func(t *testing.T) {
			upTo := newDice(seed, 7).upTo
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
			if nobodyHolds(t, c.n); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

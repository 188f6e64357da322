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
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// walk is a random history of readers, writers, conversions and hand-overs.
type walk struct {
	*testing.T
	locks locker.Locker
	nodes []*hooked
	stop  atomic.Bool // the disturbances

	mu      sync.Mutex
	random  *rand.Rand
	holders []*holder
	won     int
	cut     error // how a disturbed call fails
}

// holder is a Lock and what a user may take it for.
type holder struct {
	*locker.Lock
	hold   int  // which one hold it is of
	shares bool // a downgrade has begun
	passed bool // it was taken over: its Lock is lost, and hears of that later
}

func (w *walk) upTo(k int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(k)
}

func (w *walk) sleep(upTo time.Duration) { sleep(time.Duration(w.upTo(int(upTo)))) }

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

// takes notes what a Lock is from now on, and demands that nobody is in the way of that.
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

// run is one client.
func (w *walk) run(owner string) {
	for range 60 {
		w.sleep(60 * ms)
		req := locker.Request{Name: name, Owner: owner, Mode: locker.Mode(w.upTo(2)), Fenced: w.upTo(2) == 0}
		ctx, cancel := context.WithTimeout(w.Context(), time.Duration(1+w.upTo(400))*ms)
		lock, err := w.locks.Acquire(ctx, req)
		cancel()
		if err != nil {
			continue
		}
		h := w.add(lock, 0)
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
	switch w.upTo(6) {
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
		_ = h.Renew(ctx, time.Duration(300+w.upTo(2000))*ms)
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

// Random histories of all that a Lock can do: a writer is alone, whatever fails, and nothing is
// left behind.
func TestRandomHistoriesOfModes(t *testing.T) {
	t.Parallel()
	won := 0
	for seed := range effort.Of[uint64](2, 4, 8) {
		for _, of := range []struct{ n, quorum int }{{1, 1}, {3, 2}, {3, 3}, {4, 3}, {5, 3}} {
			synctest.Test(t, func(t *testing.T) {
				w := &walk{T: t, random: rand.New(rand.NewPCG(seed, uint64(of.n*10+of.quorum))), cut: fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)}
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
				for i, node := range w.nodes {
					if s, _ := node.Inspect(bg, name); s.Held {
						t.Errorf("node %d is still held by %q", i, s.Owner)
					}
				}
				if won += w.won; t.Failed() {
					t.Fatalf("seed %d, %+v", seed, of)
				}
			})
		}
	}
	t.Logf("%d locks", won)
}

//go:build unix

package death_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// A waiter that is killed between its wake-up and its attempt, or frozen at the head of the queue,
// delays the next one by turnLimit at most, or strictLimit in a semaphore.
func TestNextWaiterGetsItsTurn(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	s := server.Get(t)
	strategies := slices.Collect(maps.Keys(workload.Strategies))
	for of := range workload.Fair {
		strategies = append(strategies, of+fair)
	}
	slices.Sort(strategies)
	for i, client := range clients.All {
		for _, strategy := range strategies {
			for _, frozen := range []bool{false, true} {
				end := "killed"
				if frozen {
					end = "frozen"
				}
				t.Run(strings.Join([]string{client.Name, strategy, end}, "/"), func(t *testing.T) {
					t.Parallel()
					next, limit := clients.All[(i+1)%len(clients.All)], turnLimit
					if strategy == "semaphore" {
						limit = strictLimit
					}
					var took []time.Duration // a busy machine may take longer, but not each time
					for range 5 {
						d, ok := nextWaiter(t, s, strategy, client, next, t.Name()+lease.NewToken(), frozen)
						if ok && d <= limit {
							return
						}
						if ok {
							took = append(took, d)
						}
					}
					t.Errorf("the next waiter had the lock after %v, want %v", took, limit)
				})
			}
		}
	}
}

// nextWaiter kills or freezes the first waiter, and returns how long the next one waited for its
// turn. ok is false if the first one had the lock already, because it polled just then.
func nextWaiter(t *testing.T, s *redistest.Server, strategy string, first, second clients.Client, name string, frozen bool) (took time.Duration, ok bool) {
	t.Helper()
	target := drivertest.Target{Kind: drivertest.Single, Addrs: []string{s.Addr()}}
	held := hereHeld(t, first, strategy, target, name)
	head := startWaiter(t, first.Name, strategy, target, name, !frozen)
	next := startWaiter(t, second.Name, strategy, target, name, false)
	o := &turns{}
	if frozen {
		head.freeze()
	}
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if !frozen {
		got := head.hear()
		head.signal(syscall.SIGKILL)
		if got != "woken" {
			return 0, false
		}
	}
	took = o.inTurn(t, []*holder{next})
	if frozen {
		head.signal(syscall.SIGCONT)
		o.inTurn(t, []*holder{head})
	}
	nothingStays(t, s, name)
	return took, true
}

// A server that loses a queue with the lock, and a slot that moves with it, delay the waiters by
// turnLimit each at most.
func TestQueueIsLost(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	s := redistest.Start(t, redistest.Options{})
	target := drivertest.Target{Kind: drivertest.Single, Addrs: []string{s.Addr()}}
	held := hereHeld(t, clients.All[0], "single", target, t.Name())
	waiters := oneOfEach(t, "single", target)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.RestartEmpty(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the longest wait was %v", (&turns{}).inTurn(t, waiters))
	if err := held.Release(t.Context()); err == nil {
		t.Error("the lock of the server that restarted was not lost")
	}
	nothingStays(t, s, t.Name())
}

func TestQueueMoves(t *testing.T) { //nolint:tparallel // one after the other: each move waits until all nodes know of all slots
	t.Parallel()
	effort.NeedFull(t)
	c := redistest.StartCluster(t, 3, redistest.Options{})
	target := drivertest.Target{Kind: drivertest.Cluster, Addrs: c.Addrs()}
	for _, when := range []string{"before the lock moves", "after the lock moved", "after the slot moved"} {
		t.Run(when, func(t *testing.T) {
			held := hereHeld(t, clients.All[0], "single", target, t.Name())
			waiters := oneOfEach(t, "single", target)
			slot := redistest.Slot(t.Name())
			to := c.Nodes()[0]
			if to == c.NodeForSlot(slot) {
				to = c.Nodes()[1]
			}
			m, err := c.BeginMove(t.Context(), slot, to)
			if err != nil {
				t.Fatal(err)
			}
			released := make(chan error, 1)
			release := func() { released <- held.Release(context.WithoutCancel(t.Context())) }
			step := func(at string, move func() error) {
				t.Helper()
				if when == at {
					go release() // it may need the rest of the move
				}
				if err := move(); err != nil {
					t.Fatal(err)
				}
			}
			step("before the lock moves", func() error { return m.Migrate(t.Context(), t.Name()) })
			step("after the lock moved", func() error { return m.Finish(t.Context()) })
			step("after the slot moved", func() error { return nil })
			if err := <-released; err != nil {
				t.Errorf("release: %v", err)
			}
			t.Logf("the longest wait was %v", (&turns{}).inTurn(t, waiters))
			for _, node := range c.Nodes() {
				nothingStays(t, node, t.Name())
			}
		})
	}
}

// hereHeld acquires a lock in this process.
func hereHeld(t *testing.T, client clients.Client, strategy string, target drivertest.Target, name string) *locker.Lock {
	t.Helper()
	drv, err := client.Dial(t, target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = drv.Close() })
	bare, err := opener(strategy)(drv)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := bare.Acquire(t.Context(), all(strategy, name, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// oneOfEach starts a waiter with each client.
func oneOfEach(t *testing.T, strategy string, target drivertest.Target) (waiters []*holder) {
	t.Helper()
	for _, client := range clients.All {
		waiters = append(waiters, startWaiter(t, client.Name, strategy, target, t.Name(), false))
	}
	return waiters
}

// freeze stops the process, and returns when it has stopped.
func (h *holder) freeze() {
	h.t.Helper()
	h.signal(syscall.SIGSTOP)
	stat := fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid)
	for h.t.Context().Err() == nil {
		b, err := os.ReadFile(stat)
		if err != nil {
			return // no /proc here: trust the signal
		}
		if _, state, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')'):], []byte(" ")); bytes.HasPrefix(state, []byte("T")) {
			return
		}
	}
}

// keyLimit is how long the keys that a waiter leaves may exist.
const keyLimit = 20 * time.Second

// nothingStays checks that all keys of a name but its fencing counter are gone or expire soon.
func nothingStays(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	reply, err := s.Command("KEYS", "*"+name+"*")
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := reply.([]any)
	for _, key := range keys {
		left, err := s.Command("PTTL", key)
		if err != nil {
			t.Fatal(err)
		}
		ms, _ := left.(int64)
		lasts := time.Duration(ms) * time.Millisecond
		switch {
		case key == name:
			t.Errorf("the lock is left, for %v", lasts)
		case key == "{"+name+"}:fence" && ms > 0, ms == -2:
		case ms < 0 || lasts > keyLimit:
			t.Errorf("key %v is left, for %v", key, lasts)
		}
	}
}

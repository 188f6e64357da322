package rwhash_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// A contended lock is not left idle by waiters with a short MaxWait.
func TestShortWaitsKeepTheLockBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		const lasts, hold = 5 * time.Second, 50 * time.Millisecond
		var mu sync.Mutex
		var wg sync.WaitGroup
		holds, start := 0, time.Now()
		for p := range 12 {
			l := locker.Chain(locker.Must(rwhash.New(clients.OpenMemory(t, m), rwhash.Config{})), locker.Must(retry.New(retry.Config{})))
			wg.Go(func() {
				for time.Since(start) < lasts {
					lock, err := l.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 200 * time.Millisecond})
					if err != nil {
						match(t, err, locker.ErrMaxWait)
						sleep(time.Duration(100+17*p) * time.Millisecond)
						continue
					}
					sleep(hold)
					mu.Lock()
					holds++
					mu.Unlock()
					release(t, lock)
					sleep(time.Duration(50+13*p) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		if busy := float64(holds) * float64(hold) / float64(time.Since(start)); busy < 0.8 {
			t.Errorf("the lock was held %d times, for %.0f %% of the time, while 12 wanted it", holds, 100*busy)
		}
	})
}

// A waiter that gave up leaves the free lock to the next at once, whether MaxWait or the deadline
// of its ctx ended its wait.
func TestGivingUpLeavesTheLockFree(t *testing.T) {
	eachRun(t, modesByName, func(t *testing.T, b bench, mode locker.Mode) {
		l := locker.Chain(b, locker.Must(retry.New(retry.Config{})))
		first := b.write(t, locker.Request{})
		_, err := l.Acquire(t.Context(), locker.Request{Name: name, Mode: mode, MaxWait: 100 * time.Millisecond})
		match(t, err, locker.ErrMaxWait)
		release(t, first)
		sleep(time.Millisecond)
		release(t, b.have(t, noWait(writer)))
		b.free(t)
	})
}

// A reader with an owner, queued behind a writer of its process, does not keep it from the lock.
func TestQueuedReaderLetsItsOwnProcessIn(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		l := locker.Chain(b, locker.Must(retry.New(retry.Config{})))
		first := b.write(t, locker.Request{})
		var wg sync.WaitGroup
		var got time.Time
		do := func(req locker.Request, work func()) {
			wg.Go(func() {
				match(t, locker.Do(t.Context(), l, req, func(context.Context, *locker.Lock) error { work(); return nil }))
			})
		}
		do(locker.Request{Name: name}, func() { got = time.Now() })
		sleep(100 * time.Millisecond)
		do(asReader(locker.Request{Owner: "me"}), func() {})
		sleep(10 * time.Millisecond)
		released := time.Now()
		release(t, first)
		wg.Wait()
		check.AtMost(t, "time until the writer got the free lock", got.Sub(released), 50*time.Millisecond)
	})
}

// A writer waiting for the end of a MinHold learns its time.
func TestWaiterLearnsTheEndOfMinHold(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		l := locker.Chain(b, locker.Must(retry.New(retry.Config{})))
		first := b.write(t, locker.Request{MinHold: 520 * time.Millisecond})
		held := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
			late := time.Since(held) - 520*time.Millisecond
			check.Within(t, "time after the end of MinHold", late, 0, 5*time.Millisecond)
			release(t, lock)
		})
		sleep(500 * time.Millisecond)
		release(t, first)
		wg.Wait()
	})
}

// A reader waits no longer behind a writer of its own process than behind another's, even if its
// process holds the lock already.
func TestReadersBehindAWriterOfTheirProcess(t *testing.T) {
	t.Parallel()
	const turn = time.Second
	type test struct {
		nested bool // the writer waits for a reader of its own process; the new reader works for it
		apart  bool // the new reader is in another process than the writer
	}
	check.EachInFakeTime(t, map[string]test{
		"in another process":      {false, true},
		"in the writer's process": {false, false},
		"nested":                  {true, false},
	}, func(t *testing.T, tt test) {
		m := clients.NewMemory(t)
		process := func() locker.Locker {
			bare := locker.Must(rwhash.New(clients.OpenMemory(t, m), rwhash.Config{WriterTurn: turn}))
			return locker.Chain(bare, locker.Must(retry.New(retry.Config{})))
		}
		ours, others := process(), process()
		holder, reader := others, ours
		if tt.nested {
			holder = ours
		}
		if tt.apart {
			reader = others
		}
		held := locker.Must(holder.Acquire(t.Context(), asReader(locker.Request{Owner: "holder", TTL: time.Hour})))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if lock, err := ours.Acquire(ctx, asWriter(locker.Request{})); err == nil {
				release(t, lock)
			}
		})
		sleep(100 * time.Millisecond) // it waits
		start := time.Now()
		lock, err := reader.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, MaxWait: time.Minute})
		if took := time.Since(start); err != nil || took > 2*turn {
			t.Errorf("the reader waited for %v, of turns of %v: %v", took, turn, err)
		} else {
			release(t, lock)
		}
		release(t, held)
		cancel()
		wg.Wait()
		sleep(time.Millisecond) // it leaves the queue
	})
}

// A reader that entered beside others is no longer counted as waiting: no later turn is for it.
func TestReaderThatGotInWaitsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		process := func() locker.Locker {
			bare := locker.Must(rwhash.New(clients.OpenMemory(t, m), rwhash.Config{WriterTurn: time.Second}))
			return locker.Chain(bare, locker.Must(retry.New(retry.Config{})))
		}
		a, ours, others := process(), process(), process()
		held := locker.Must(a.Acquire(t.Context(), asReader(locker.Request{TTL: time.Hour})))
		var wg sync.WaitGroup
		var ended, got time.Time
		wg.Go(func() {
			lock := locker.Must(others.Acquire(t.Context(), writer))
			ended = time.Now()
			release(t, lock)
		})
		sleep(100 * time.Millisecond)
		wg.Go(func() { // its process listens
			lock := locker.Must(ours.Acquire(t.Context(), writer))
			got = time.Now()
			release(t, lock)
		})
		lock := locker.Must(ours.Acquire(t.Context(), reader)) // once the writer's time is over
		release(t, lock, held)
		wg.Wait()
		check.AtMost(t, "time from the end of the first writer until the second got in", got.Sub(ended), 50*time.Millisecond)
		sleep(time.Millisecond)
	})
}

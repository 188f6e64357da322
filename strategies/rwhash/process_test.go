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

// A reader does not wait longer behind a writer of its own process than behind one of another.
// Neither does a reader whose process holds the lock already.
func TestReadersBehindAWriterOfTheirProcess(t *testing.T) {
	t.Parallel()
	const turn = time.Second
	type test struct {
		nested bool // the writer waits for a reader of its own process, for whom the new reader works
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

// A reader that got in beside others is not counted as one that waits: no later turn is for it.
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

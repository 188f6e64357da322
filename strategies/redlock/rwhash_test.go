package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// overRWHash runs f in fake time on a quorum over three servers with locks for readers and writers.
func overRWHash(t *testing.T, f func(t *testing.T, l *redlock.Locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var nodes []locker.Locker
		for range 3 {
			drv := clients.OpenMemory(t, clients.NewMemory(t))
			nodes = append(nodes, locker.Must(rwhash.New(drv, rwhash.Config{})))
		}
		f(t, locker.Must(redlock.New(nodes, redlock.Config{})))
		sleep(time.Minute) // what is behind ends
	})
}

// A writer that waits keeps new readers out at the nodes, though each of its attempts is one that
// does not wait there.
func TestWaitingWritersGetIn(t *testing.T) {
	overRWHash(t, func(t *testing.T, l *redlock.Locker) {
		waiting := locker.Chain(l, locker.Must(retry.New(retry.Config{})))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		const readers = 4
		for i := range readers { // there is always one at least
			go func() {
				defer func() { done <- struct{}{} }()
				sleep(time.Duration(i) * 50 * ms)
				for ctx.Err() == nil {
					lock, err := l.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, NoWait: true})
					if err != nil {
						sleep(5 * ms)
						continue
					}
					sleep(200 * ms)
					match(t, lock.Release(t.Context()))
				}
			}()
		}
		sleep(time.Second)
		for range 5 {
			lock, err := waiting.Acquire(t.Context(), locker.Request{Name: name, MaxWait: 20 * time.Second})
			if err != nil {
				t.Errorf("a writer among readers: %v", err)
				break
			}
			sleep(50 * ms)
			match(t, lock.Release(t.Context()))
		}
		stop()
		for range readers {
			<-done
		}
	})
}

// An upgraded lock has a token that no writer had before.
func TestUpgradeMintsAToken(t *testing.T) {
	overRWHash(t, func(t *testing.T, l *redlock.Locker) {
		writer := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true}))
		match(t, writer.Release(t.Context()))
		sleep(time.Second)
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Fenced: true, Mode: locker.Shared}))
		sleep(time.Second)
		match(t, lock.Upgrade(t.Context()))
		if lock.Fence() <= writer.Fence() || lock.Mode() != locker.Exclusive {
			t.Errorf("%v with fence %d, after a writer with %d", lock, lock.Fence(), writer.Fence())
		}
		match(t, lock.Renew(t.Context(), 0))
		match(t, lock.Downgrade(t.Context()))
		beside := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared}))
		match(t, lock.Upgrade(t.Context()), locker.ErrNotAcquired)
		match(t, beside.Release(t.Context()))
		match(t, lock.Release(t.Context()))
		sleep(time.Second)
	})
}

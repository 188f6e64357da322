package locker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// The nil and the zero Lock share a state. Their methods do not wait for one another.
func TestLockOfNothingAtOnce(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var lock *locker.Lock
			for range 300 {
				check.Error(t, "Upgrade", lock.Upgrade(ended), locker.ErrNotHeld)
				check.Error(t, "Downgrade", new(locker.Lock).Downgrade(ended), locker.ErrNotHeld)
				check.Error(t, "SetNote", lock.SetNote(ended, "x"), locker.ErrNotHeld)
				<-lock.Done()
				lock.Hold().MarkLost(nil)
			}
		})
	}
	all.Wait()
}

// Every method at once, for the race detector. Whatever the order, the lock ends once, with one
// reason, and each callback runs once or is removed.
func TestLockAllAtOnce(t *testing.T) {
	t.Parallel()
	for range 200 {
		var lost atomic.Int32
		l := &fakeLease{}
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Lost: func(context.Context, locktrace.LostInfo) { lost.Add(1) }})
		ttl := time.Duration(rand.IntN(2000)) * time.Microsecond
		//realtime:ok it may end at any instant
		lock := locker.NewLock(ctx, lease.HoldInfo{Name: "a", Token: secret, TTL: time.Millisecond, Deadline: time.Now().Add(ttl)}, l)
		var told, taken, released atomic.Int32
		var reasons sync.Map
		work := []func(){
			func() { _ = lock.Renew(ctx, time.Millisecond) },
			func() { _ = lock.Renew(ctx, 2*time.Millisecond) },
			func() { _ = lock.Downgrade(ctx) },
			func() { lock.Hold().MarkLost(nil) },
			func() { <-lock.Done() },
			func() {
				_ = fmt.Sprint(lock, lock.LogValue(), lock.Handle(), lock.Owner(), lock.Fence(), lock.Mode(), lock.Deadline())
			},
			func() {
				work, cancel := lock.Context(ctx)
				defer cancel()
				<-work.Done()
			},
		}
		for range 3 {
			work = append(work, func() {
				if err := lock.Release(ctx); !errors.Is(err, locker.ErrReleased) {
					released.Add(1)
				}
			}, func() {
				stop := lock.AfterDone(func(err error) {
					told.Add(1)
					reasons.Store(err.Error(), true)
				})
				if rand.IntN(2) == 0 && stop() {
					taken.Add(1)
				}
			})
		}
		rand.Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
		var wg sync.WaitGroup
		for _, f := range work {
			wg.Go(f)
		}
		wg.Wait()
		// A method that finds the Deadline passed reports it in a goroutine.
		check.Eventually(t, "3 callbacks are told or taken back", func() bool { return told.Load()+taken.Load() >= 3 })
		n := 0
		reasons.Range(func(any, any) bool { n++; return true })
		if told.Load()+taken.Load() != 3 || n > 1 || lost.Load() > 1 {
			t.Fatalf("of 3 callbacks %d were told and %d taken back, with %d reasons; Lost %d times", told.Load(), taken.Load(), n, lost.Load())
		}
		sent := slices.DeleteFunc(l.asked(), func(op lease.Op) bool { return op.Kind != lease.OpRelease })
		if released.Load() != 1 || len(sent) != 1 {
			t.Fatalf("of 3 calls %d released, and %d releases were sent; want one", released.Load(), len(sent))
		}
	}
}

// Inner middleware may have started the timer before outer middleware wraps the lease.
func TestWrapLeaseBesideATimer(t *testing.T) {
	t.Parallel()
	var lock *locker.Lock
	made, over := make(chan struct{}), make(chan struct{})
	ctx := locktrace.With(t.Context(), &locktrace.Trace{Lost: func(context.Context, locktrace.LostInfo) {
		defer close(over)
		<-made
		for range 1000 {
			_ = lock.Mode()
		}
	}})
	lock = locker.NewLock(ctx, lease.HoldInfo{Name: "a", Token: secret, Deadline: time.Now().Add(time.Millisecond)}, &fakeLease{})
	close(made)
	lock.AfterDone(func(error) {})
	for !check.Closed(over) {
		lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return l })
	}
}

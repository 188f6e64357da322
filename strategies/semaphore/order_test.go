package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// A large request that is first keeps others out, whether they are newcomers, do not wait or wait
// too, and whichever process they are in. It gets its permits as soon as enough are free.
func TestLargeRequestsAreNotStarved(t *testing.T) {
	run(t, 4, func(t *testing.T, b bench) {
		a, c := take(t, b, locker.Request{TTL: time.Hour}), take(t, b, locker.Request{TTL: time.Hour})
		large := wait(t.Context(), process(b), locker.Request{Permits: 4, TTL: time.Hour})
		synctest.Wait()
		sleep(time.Second)
		small := []<-chan acquired{wait(t.Context(), process(b), locker.Request{}), wait(t.Context(), process(b), locker.Request{})}
		for range 20 {
			sleep(time.Second)
			if held := refused(t, b, 1); held.RetryAfter != 0 {
				t.Errorf("try again in %v, though the request does not wait", held.RetryAfter)
			}
			b.state(t, 2, 2)
		}
		release(t, a)
		sleep(100 * time.Millisecond)
		b.state(t, 1, 3)
		release(t, c)
		sleep(100 * time.Millisecond)
		lock := got(t, large)
		if lock == nil {
			t.Fatal("all permits are free, and the first waiter has not got them")
		}
		release(t, lock)
		sleep(100 * time.Millisecond)
		for _, ch := range small {
			if lock := got(t, ch); lock == nil {
				t.Error("a small request still waits")
			} else {
				release(t, lock)
			}
		}
		b.gone(t)
	})
}

// A release that frees permits for several waiters wakes all who fit, and none behind the first who
// does not.
func TestReleaseWakesAllWhoFit(t *testing.T) {
	run(t, 10, func(t *testing.T, b bench) {
		all := take(t, b, locker.Request{Permits: 10, TTL: time.Hour})
		var waiting []<-chan acquired
		for _, permits := range []int{2, 1, 3, 5, 1} {
			waiting = append(waiting, wait(t.Context(), process(b), locker.Request{Permits: permits, TTL: time.Hour}))
			synctest.Wait()
			sleep(10 * time.Millisecond)
		}
		release(t, all)
		sleep(100 * time.Millisecond) // much less than any of them polls
		b.state(t, 3, 4)
		var locks []*locker.Lock
		for i, ch := range waiting {
			lock := got(t, ch)
			if (lock != nil) != (i < 3) {
				t.Errorf("waiter %d has %v", i, lock)
			}
			locks = append(locks, lock)
		}
		release(t, locks[1])
		sleep(100 * time.Millisecond)
		b.state(t, 3, 0) // the one of 5
		release(t, locks[0])
		sleep(100 * time.Millisecond)
		b.state(t, 3, 1) // and the one behind it
		for _, ch := range waiting[3:] {
			locks = append(locks, got(t, ch))
		}
		release(t, locks[2], locks[5], locks[6])
		b.gone(t)
	})
}

// The waiters of one process hold at the same time.
func TestWaitersOfAProcessHoldTogether(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		l := process(b)
		all := take(t, l, locker.Request{Permits: 3, TTL: time.Hour})
		var waiting []<-chan acquired
		for range 5 {
			waiting = append(waiting, wait(t.Context(), l, locker.Request{TTL: time.Hour}))
			synctest.Wait()
		}
		release(t, all)
		sleep(time.Millisecond) // less than a turn of a process, in which it would have a lock alone
		b.state(t, 3, 0)
		var held []*locker.Lock
		for i, ch := range waiting {
			lock := got(t, ch)
			if (lock != nil) != (i < 3) {
				t.Fatalf("waiter %d has %v", i, lock)
			}
			held = append(held, lock)
		}
		for i := range 2 {
			release(t, held[i])
			sleep(10 * time.Millisecond)
			if held[3+i] = got(t, waiting[3+i]); held[3+i] == nil {
				t.Fatalf("waiter %d was not woken", 3+i)
			}
		}
		release(t, held[2:]...)
		b.gone(t)
	})
}

// A process with many waiters does not keep permits from one with a single waiter: that has its
// turn after one hold of each other process at most.
func TestProcessesTakeTurns(t *testing.T) {
	run(t, 2, func(t *testing.T, b bench) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		crowd := process(b)
		for range 20 {
			wg.Go(func() {
				for {
					lock, err := crowd.Acquire(ctx, locker.Request{Name: name})
					if err != nil {
						return
					}
					sleep(50 * time.Millisecond)
					_ = lock.Release(t.Context())
				}
			})
		}
		single := process(b)
		for range 20 {
			sleep(500 * time.Millisecond)
			begin := time.Now()
			lock := take(t, single, locker.Request{})
			// The 20 of the crowd that came before hold for half a second in all.
			if waited := time.Since(begin); waited > 700*time.Millisecond {
				t.Errorf("waited %v beside a crowd", waited)
			}
			release(t, lock)
		}
		cancel()
		wg.Wait()
		sleep(time.Minute)
		b.gone(t)
	})
}

// Permits of a holder that died are granted to a waiter when its lease ends.
func TestWaiterGetsExpiredPermits(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		live := take(t, b, locker.Request{TTL: time.Hour})
		take(t, b, locker.Request{TTL: 1500 * time.Millisecond})
		take(t, b, locker.Request{TTL: 2500 * time.Millisecond})
		begin := time.Now()
		lock := take(t, process(b), locker.Request{Permits: 2})
		if waited := time.Since(begin); waited > 2600*time.Millisecond {
			t.Errorf("waited %v for a lease of 2.5 s", waited)
		}
		release(t, live, lock)
		b.gone(t)
	})
}

// A first waiter that gives up or dies delays the others by 4 s at most.
func TestFirstWaiterThatLeaves(t *testing.T) {
	run(t, 4, func(t *testing.T, b bench) {
		keeper := take(t, b, locker.Request{TTL: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		large := wait(ctx, process(b), locker.Request{Permits: 4})
		sleep(1700 * time.Millisecond)
		begin := time.Now()
		small := wait(t.Context(), process(b), locker.Request{TTL: time.Hour})
		sleep(100 * time.Millisecond)
		if lock := got(t, small); lock != nil {
			t.Error("a small request passed the first waiter")
		}
		cancel()
		match(t, (<-large).err, context.Canceled)
		if a := <-small; a.err != nil || time.Since(begin) > 4100*time.Millisecond {
			t.Errorf("%v, %v after its beginning", a.err, time.Since(begin))
		} else {
			release(t, a.lock)
		}
		release(t, keeper)
	})
}

// A limit that grows lets the waiters in.
func TestGrowthWakesWaiters(t *testing.T) {
	run(t, 1, func(t *testing.T, b bench) {
		keeper := take(t, b, locker.Request{TTL: time.Hour})
		three := b.with(semaphore.Config{Permits: 3, Resize: true})
		waiting := wait(t.Context(), process(three), locker.Request{})
		sleep(time.Millisecond)
		other := take(t, process(three), locker.Request{TTL: time.Hour})
		a := <-waiting
		match(t, a.err)
		release(t, a.lock, other, keeper)
	})
}

// Middleware that hands locks over releases permits instead.
func TestPermitsAreNotHandedOver(t *testing.T) {
	run(t, 2, func(t *testing.T, b bench) {
		l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{HandOver: time.Minute})))
		all := take(t, l, locker.Request{Permits: 2, TTL: time.Hour})
		one, two := wait(t.Context(), l, locker.Request{}), wait(t.Context(), l, locker.Request{})
		synctest.Wait()
		release(t, all)
		first, second := <-one, <-two
		match(t, first.err)
		match(t, second.err)
		b.state(t, 2, 0)
		release(t, first.lock, second.lock)
	})
}

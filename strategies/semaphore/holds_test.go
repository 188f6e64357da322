//realtime:ok each test runs in a bubble, by run of tools_test.go

package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// Many permits expire at once: as many are granted again, and no more.
func TestManyExpireAtOnce(t *testing.T) {
	run(t, 1200, func(t *testing.T, b bench) {
		for range 1200 {
			take(t, b, locker.Request{TTL: 5 * time.Second})
		}
		refused(t, b, 1)
		sleep(5 * time.Second)
		take(t, b, locker.Request{TTL: time.Minute, Permits: 1100})
		for range 100 {
			take(t, b, locker.Request{TTL: time.Minute})
		}
		refused(t, b, 1)
		b.state(t, 101, 0)
	})
}

func TestInvalid(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		for what, cfg := range map[string]semaphore.Config{
			"no permits": {}, "negative": {Permits: -1}, "too many": {Permits: semaphore.MaxPermits + 1},
			"bad TTL": {Permits: 1, TTL: -1},
		} {
			check.Error(t, what, check.ErrOf(semaphore.New(b.drv, cfg)), locker.ErrInvalid)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		begin, sent := time.Now(), b.drv.Sent()
		for _, l := range []locker.Locker{b, process(b)} {
			for _, permits := range []int{-1, 4} {
				_, err := l.Acquire(ctx, locker.Request{Name: name, Permits: permits})
				match(t, err, locker.ErrInvalid)
			}
			_, err := l.Acquire(ctx, locker.Request{Name: name, Mode: locker.Shared})
			match(t, err, errors.ErrUnsupported)
		}
		if time.Since(begin) > 0 || b.drv.Sent() != sent {
			t.Error("they were not refused at once")
		}
		lock := take(t, b, locker.Request{})
		match(t, lock.Downgrade(t.Context()), errors.ErrUnsupported)
	})
}

func wantLimit(t *testing.T, err error, want, have int) {
	t.Helper()
	if limit, ok := errors.AsType[*semaphore.LimitError](err); !ok || limit.Want != want || limit.Have != have {
		t.Errorf("%v; want a LimitError of %d, where %d are", err, want, have)
	}
}

// A limit counts until the last hold has ended, even if the key is still there.
func TestLimitEndsWithLastHold(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		take(t, b, locker.Request{TTL: time.Second, Permits: 2})
		b.m.SetTTL(name, time.Hour)
		five := b.with(semaphore.Config{Permits: 5})
		_, err := five.Acquire(t.Context(), locker.Request{Name: name})
		wantLimit(t, err, 5, 3)
		sleep(time.Second)
		all := take(t, five, locker.Request{Permits: 5})
		refused(t, five, 1)
		release(t, all)
		b.gone(t)
	})
}

// A larger limit counts at once; a smaller one, as permits return.
func TestResize(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		five, two := b.with(semaphore.Config{Permits: 5, Resize: true}), b.with(semaphore.Config{Permits: 2, Resize: true})
		a, c := take(t, b, locker.Request{}), take(t, b, locker.Request{Permits: 2})
		refused(t, b, 1)
		d := take(t, five, locker.Request{Permits: 2})
		check.Equal(t, "permits", b.state(t, 3, 0).Permits, 5)
		_, err := b.Acquire(t.Context(), locker.Request{Name: name})
		wantLimit(t, err, 3, 5)
		refused(t, two, 1)
		check.Equal(t, "permits after a refused acquire, which sets the limit too", b.state(t, 3, 0).Permits, 2)
		match(t, a.Renew(t.Context(), 0))
		for _, lock := range []*locker.Lock{c, a} { // 3, then 2 are held
			release(t, lock)
			refused(t, two, 1)
		}
		release(t, d)
		release(t, take(t, two, locker.Request{Permits: 2}))
		b.gone(t)
	})
}

// A key other than a semaphore of this package is an error, and left alone.
func TestForeignKeys(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		for what, set := range map[string]func(){
			"a string":      func() { _ = b.m.Set(name, "x") },
			"a hash":        func() { b.m.HSet(name, "kind", "rwhash") },
			"a sorted set":  func() { _, _ = b.m.ZAdd(name, 1, "x") },
			"no count":      func() { _, _ = b.m.ZAdd(name, -3, "permits") },
			"a bad limit":   func() { _, _ = b.m.ZAdd(name, 3, "permits"); _, _ = b.m.ZAdd(name, -1, "used") },
			"half a permit": func() { _, _ = b.m.ZAdd(name, -3, "permits"); _, _ = b.m.ZAdd(name, -1.5, "used") },
			"a hold of theirs": func() {
				_, _ = b.m.ZAdd(name, -3, "permits")
				_, _ = b.m.ZAdd(name, -4, "used")
				_, _ = b.m.ZAdd(name, 1, "x")
			},
		} {
			set()
			before := b.m.Dump()
			lock, err := b.Acquire(t.Context(), locker.Request{Name: name, NoWait: true})
			if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) {
				t.Errorf("%s: acquired %v, %v", what, lock, err)
			}
			if _, err := b.Inspect(t.Context(), name); err == nil && what != "a hold of theirs" {
				t.Errorf("%s: no error of Inspect", what)
			}
			check.Equal(t, what, b.m.Dump(), before)
			b.m.Del(name)
		}
		lock := take(t, b, locker.Request{MinHold: locker.DefaultTTL})
		take(t, b, locker.Request{TTL: time.Second, Permits: 2})
		_, err := b.m.ZAdd(name, float64(time.Now().Add(2*time.Second).UnixMilli()), "x")
		match(t, err)
		sleep(2 * time.Second)
		match(t, lock.Renew(t.Context(), 0))
		release(t, lock)
		if used, err := b.m.ZScore(name, "used"); used != -4 || err != nil {
			t.Errorf("used has the score %v, %v: want -4, for none was removed", used, err)
		}
	})
}

// A hold removed by something else does not keep its permits.
func TestRemovedHold(t *testing.T) {
	run(t, 2, func(t *testing.T, b bench) {
		lock, other := take(t, b, locker.Request{}), take(t, b, locker.Request{})
		members, err := b.m.ZMembers(name)
		match(t, err)
		for _, member := range members {
			if len(member) > lease.TokenLen {
				_, err := b.m.ZRem(name, member)
				match(t, err)
			}
		}
		b.state(t, 0, 2)
		match(t, lock.Renew(t.Context(), 0), locker.ErrLost)
		match(t, other.Renew(t.Context(), 0), locker.ErrLost)
		lock, other = take(t, b, locker.Request{}), take(t, b, locker.Request{}) // none of the permits is missing
		b.state(t, 2, 0)
		release(t, lock)
		release(t, other)
		b.gone(t)
	})
}

// A released hold in its MinHold cannot be renewed, released or resumed, and keeps its permits when
// the limit changes.
func TestKeptHold(t *testing.T) {
	run(t, 3, func(t *testing.T, b bench) {
		lock := take(t, b, locker.Request{MinHold: 20 * time.Second, Permits: 2})
		handle := lock.Handle()
		release(t, lock)
		_, err := locker.Resume(t.Context(), b, handle)
		match(t, err, locker.ErrNotHeld)
		match(t, b.ReleaseHandle(t.Context(), handle), locker.ErrNotHeld)
		_, err = b.with(semaphore.Config{Permits: 4}).Acquire(t.Context(), locker.Request{Name: name})
		wantLimit(t, err, 4, 3)
		four := b.with(semaphore.Config{Permits: 4, Resize: true})
		refused(t, four, 3)
		release(t, take(t, four, locker.Request{Permits: 2}))
		keeper := take(t, four, locker.Request{TTL: time.Hour})
		b.state(t, 1, 1)
		sleep(20 * time.Second)
		b.state(t, 1, 3)
		release(t, keeper)
		b.gone(t)
	})
}

// A process with many waiters does not keep permits from one with a single waiter: it has its turn
// after one hold of each other process at most.
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
		for range 5 {
			sleep(500 * time.Millisecond)
			begin := time.Now()
			lock := take(t, single, locker.Request{})
			// The 20 holds of the crowd ahead of it last half a second in all.
			check.AtMost(t, "wait beside a crowd", time.Since(begin), 700*time.Millisecond)
			release(t, lock)
		}
		cancel()
		wg.Wait()
		sleep(time.Minute)
		b.gone(t)
	})
}

// A short hold in a set that somebody left without an expiry does not end the others.
func TestSetWithoutExpiry(t *testing.T) {
	run(t, 2, func(t *testing.T, b bench) {
		take(t, b, locker.Request{TTL: time.Hour})
		_, err := b.drv.Eval(t.Context(), driver.NewScript(`return redis.call('PERSIST', KEYS[1])`), []string{name}, nil)
		check.Must(t, err)
		take(t, b, locker.Request{TTL: time.Second})
		check.Equal(t, "TTL", b.m.TTL(name), time.Hour)
		sleep(2 * time.Second)
		b.state(t, 1, 1)
	})
}

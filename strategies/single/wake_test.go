package single_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// waits returns a ctx for an attempt of a waiter after a wait of d.
func waits(t *testing.T, id string, d time.Duration) context.Context {
	t.Helper()
	return lease.WithWaiting(t.Context(), lease.Waiting{ID: id, Since: time.Now().Add(-d)})
}

// refused attempts to acquire, and fails the test unless it is refused.
func (b bench) refused(t *testing.T, ctx context.Context, req locker.Request) *locker.ContentionError {
	t.Helper()
	req.Name = name
	_, err := b.Acquire(ctx, req)
	return locktest.Refusal(t, err)
}

// A release in favour of its own process, resent in the background, wakes the first waiter: its own
// process has tried by then.
func TestLateReleaseWakesOthers(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		held := b.acquire(t, locker.Request{TTL: time.Minute})
		own, other := lease.NewToken(), lease.NewToken()
		for id, d := range map[string]time.Duration{own: time.Second, other: 2 * time.Second} {
			_ = b.refused(t, waits(t, id, d), locker.Request{})
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.drv.Then(fault{Hang: true})
		_, err := locktest.LeaseOf(held).Do(ctx, lease.Op{Kind: lease.OpRelease, Waiter: own, ForWaiter: true})
		check.Is(t, err, locker.ErrUnknownOutcome)
		sleep(100 * time.Millisecond)
		if score, err := b.m.ZScore("{job}:waiters", other); err != nil || score >= 0 || b.m.Exists("job") {
			t.Errorf("the first waiter was not woken: score %v, %v", score, err)
		}
	})
}

// A refusal says whether another library holds the lock: waiters poll it then.
func TestForeignValues(t *testing.T) {
	token := lease.NewToken()
	type test struct {
		value   string
		foreign bool
	}
	eachRun(t, single.Config{}, map[string]test{
		"a token":                          {value: token},
		"a token, an owner and a note":     {value: token + "|a|b"},
		"a value kept by a release":        {value: "~" + token + "|a|b"},
		"a reservation for a group":        {value: "~"},
		"a reservation for a waiter":       {value: "~" + token + "~"},
		"16 bytes in base64":               {value: "AAAAAAAAAAAAAAAAAAAAAA==", foreign: true},
		"hexadecimal digits":               {value: "0123456789abcdef0123456789abcdef", foreign: true},
		"digits, a token's last character": {value: "0123456789abcdef01234f6789abcdef", foreign: true},
		"less than a token":                {value: "x", foreign: true},
		"less than a token, kept":          {value: "~x", foreign: true},
	}, func(t *testing.T, b bench, tt test) {
		check.Must(t, b.m.Set(name, tt.value))
		b.m.SetTTL(name, time.Minute)
		check.Equal(t, "Foreign", b.refused(t, t.Context(), locker.Request{NoWait: true}).Foreign, tt.foreign)
	})
}

// Inspect counts each waiting process once, until its place expires; if nobody has a place, it
// counts all waiters without one as one.
func TestInspectCountsWaiters(t *testing.T) {
	run(t, single.Config{}, func(t *testing.T, b bench) {
		b.acquire(t, locker.Request{TTL: time.Minute})
		counts := func(want int, when string) {
			t.Helper()
			check.Equal(t, "waiters "+when, locker.Must(b.Inspect(t.Context(), "job")).Waiters, want)
		}
		counts(0, "nobody waits")
		_ = b.refused(t, t.Context(), locker.Request{NoWait: true})
		counts(0, "after an attempt that does not wait")
		_ = b.refused(t, t.Context(), locker.Request{})
		_ = b.refused(t, t.Context(), locker.Request{})
		counts(1, "two waiters without a place")
		first, second := lease.NewToken(), lease.NewToken()
		for i, id := range []string{first, second, first} {
			_ = b.refused(t, waits(t, id, time.Second), locker.Request{})
			counts(min(i+1, 2), "and processes with a place")
		}
		sleep(4 * time.Second)
		_ = b.refused(t, waits(t, second, time.Second), locker.Request{})
		sleep(2 * time.Second)
		counts(1, "one of them tried again")
		locker.Must(locker.Break(t.Context(), b, "job"))
		counts(1, "the lock is free, and kept for the waiter")
		sleep(5 * time.Second)
		counts(0, "the waiter has died")
	})
}

// A release drops a thousand dead waiters at once, and wakes the one behind them.
func TestDeadWaitersDelayNobody(t *testing.T) {
	t.Parallel()
	for what, fair := range map[string]bool{"by chance": false, "fair": true} {
		t.Run(what, func(t *testing.T) {
			run(t, single.Config{Fair: fair}, func(t *testing.T, b bench) {
				l := locker.Must(single.New(clients.OpenMemory(t, b.m), single.Config{Fair: fair}))
				held := b.acquire(t, locker.Request{TTL: time.Minute})
				attempt := func(w lease.Waiting) *locker.ContentionError {
					t.Helper()
					w.Subscribed = true
					return locktest.Refusal(t, check.ErrOf(l.Acquire(lease.WithWaiting(t.Context(), w), locker.Request{Name: "job"})))
				}
				for range 1000 {
					attempt(lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(-time.Hour)})
				}
				alive := lease.Waiting{ID: lease.NewToken(), Since: time.Now()}
				sub := locker.Must(attempt(alive).Channel.For(alive.ID).Subscribe(t.Context()))
				defer sub.Close()
				<-sub.Wake()
				attempt(alive)
				locktest.Release(t, held)
				released := time.Now()
				select {
				case <-sub.Wake():
				case <-time.After(time.Minute):
				}
				check.AtMost(t, "time until the wake-up", time.Since(released), 10*time.Millisecond)
			})
		})
	}
}

// A waiter is marked for 30 s at most, however far the server's clock is set back meanwhile.
func TestMarkWhenTheClockIsSetBack(t *testing.T) {
	type test struct{ left, again time.Duration }
	eachRun(t, single.Config{}, map[string]test{
		"the clock goes on": {30 * time.Second, 200 * time.Millisecond},
		"set back":          {time.Hour, 2 * time.Second},
	}, func(t *testing.T, b bench, tt test) {
		held, id := b.acquire(t, locker.Request{TTL: time.Minute}), lease.NewToken()
		check.Must(t, check.ErrOf(b.m.ZAdd("{job}:waiters", 5e15+float64(time.Now().Add(tt.left).UnixMilli()), "!"+id)))
		again := b.refused(t, waits(t, id, 0), locker.Request{}).RetryAfter
		check.Within(t, "time until the next attempt", again, tt.again/2, tt.again)
		locktest.Release(t, held)
	})
}

// A woken waiter keeps the lock from other waiters for 500 ms, and no longer if the server's clock
// is set back, as by a failover.
func TestQueueWhenTheClockIsSetBack(t *testing.T) {
	type test struct {
		step    time.Duration
		refused bool
	}
	eachRun(t, single.Config{}, map[string]test{
		"the clock goes on":  {500 * time.Millisecond, true},
		"500 ms have passed": {501 * time.Millisecond, false},
		"set back":           {-time.Hour, false},
	}, func(t *testing.T, b bench, tt test) {
		held := b.acquire(t, locker.Request{TTL: time.Minute})
		first, second := waits(t, lease.NewToken(), 2*time.Second), waits(t, lease.NewToken(), time.Second)
		_ = b.refused(t, first, locker.Request{})
		_ = b.refused(t, second, locker.Request{})
		locktest.Release(t, held)
		b.m.SetTime(time.Now().Add(tt.step))
		_, err := b.Acquire(second, locker.Request{Name: name})
		check.Equal(t, "the second waiter is refused", errors.Is(err, locker.ErrNotAcquired), tt.refused)
	})
}

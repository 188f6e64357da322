//nolint:forbidigo // fake time
package watchdog_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for what, cfg := range map[string]watchdog.Config{
		"watchdog.Config.Jitter":      {Jitter: 0.51},
		"watchdog.Config.Jitter ":     {Jitter: -0.1},
		"watchdog.Config.Jitter  ":    {Jitter: math.NaN()},
		"watchdog.Config.MaxRenewals": {MaxRenewals: -1},
		"watchdog.Config.MaxHold":     {MaxHold: -1},
	} {
		if m, err := watchdog.New(cfg); m != nil || !errors.Is(err, locker.ErrInvalid) {
			t.Errorf("%s: New(%+v) = %v; want ErrInvalid", what, cfg, err)
		}
	}
	_, err := locker.Must(watchdog.New(watchdog.Config{}))(nil).Acquire(t.Context(), locker.Request{Name: name})
	match(t, err, locker.ErrInvalid)
}

// Each renewal is sent within the jitter before a third of the lease is over.
func TestRenewsAtAThirdOfTheLease(t *testing.T) { //nolint:tparallel // inMemory does
	t.Parallel()
	for _, jitter := range []float64{0, 0.01, 0.5} {
		for _, ttl := range []time.Duration{15 * time.Millisecond, time.Second, ttl, time.Hour} {
			t.Run(fmt.Sprint(jitter, ttl), func(t *testing.T) {
				inMemory(t, watchdog.Config{Jitter: jitter}, func(t *testing.T, _ *lockertest.Locker, l locker.Locker) {
					ctx, at := renewals(t)
					lock := acquire(t, ctx, l, locker.Request{TTL: ttl})
					time.Sleep(20 * ttl)
					synctest.Wait()
					release(t, lock)
					latest := ttl / 3
					earliest := latest - time.Duration(float64(latest)*cmp.Or(jitter, 0.1)) - 2
					var before time.Duration
					different := map[time.Duration]bool{}
					for i, now := range at.list() {
						check.Within(t, fmt.Sprintf("pause before renewal %d", i), now-before, earliest, latest)
						different[now-before] = true
						before = now
					}
					check.Within(t, "renewals", len(at.list()), 60, 121)
					check.AtLeast(t, "different pauses", len(different), 2)
				})
			})
		}
	}
}

// A released lock is forgotten long before its next renewal would be due.
func TestReleaseFreesMemory(t *testing.T) {
	t.Parallel()
	l := locker.Must(watchdog.New(watchdog.Config{}))(granting{})
	kept := acquire(t, t.Context(), l, locker.Request{TTL: locker.MaxTTL})
	lock := acquire(t, t.Context(), l, locker.Request{TTL: locker.MaxTTL})
	freed := make(chan struct{})
	runtime.AddCleanup(lock, func(done chan struct{}) { close(done) }, freed)
	match(t, lock.Release(t.Context()))
	for begun := time.Now(); time.Since(begun) < time.Minute; runtime.GC() {
		select {
		case <-freed:
			match(t, kept.Release(t.Context()))
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Fatal("the lock is still reachable")
}

// The name is free one TTL after the watching ended, and the Lock reports the reason.
func TestLimits(t *testing.T) { //nolint:tparallel // inMemory does
	t.Parallel()
	tests := map[string]struct {
		cfg      watchdog.Config
		why      error
		renewals int
		min, max time.Duration // of the hold
	}{
		"MaxRenewals": {watchdog.Config{MaxRenewals: 3}, watchdog.ErrMaxRenewals, 3, 57 * time.Second, time.Minute},
		"MaxHold":     {watchdog.Config{MaxHold: 25 * time.Second}, watchdog.ErrMaxHold, 2, 48 * time.Second, 50 * time.Second},
		"short":       {watchdog.Config{MaxHold: time.Second}, watchdog.ErrMaxHold, 0, ttl, ttl},
		"first":       {watchdog.Config{MaxHold: time.Minute, MaxRenewals: 1}, watchdog.ErrMaxRenewals, 1, 39 * time.Second, 40 * time.Second},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			inMemory(t, tt.cfg, func(t *testing.T, server *lockertest.Locker, l locker.Locker) {
				ctx, at := renewals(t)
				start := time.Now()
				lock := acquire(t, ctx, l, locker.Request{})
				<-lock.Done()
				check.Within(t, "time of the hold", time.Since(start), tt.min, tt.max)
				check.Equal(t, "renewals", len(at.list()), tt.renewals)
				match(t, lock.Err(), locker.ErrLost, tt.why)
				match(t, lock.Release(t.Context()), locker.ErrLost, tt.why)
				held(t, server.Hold(locker.Request{Name: name}))
			})
		})
	}
}

// A lock that cannot be renewed, or that ends for another reason, is forgotten.
func TestLetsGo(t *testing.T) {
	type ending func(server *lockertest.Locker, lock *locker.Lock)
	eachInMemory(t, watchdog.Config{}, map[string]ending{
		"unsupported": func(server *lockertest.Locker, _ *locker.Lock) { server.FailRenew(errors.ErrUnsupported) },
		"closed":      func(server *lockertest.Locker, _ *locker.Lock) { server.FailRenew(locker.ErrClosed) },
		"lost":        func(_ *lockertest.Locker, lock *locker.Lock) { lock.Hold().MarkLost(nil) },
	}, func(t *testing.T, server *lockertest.Locker, l locker.Locker, end ending) {
		ctx, at := renewals(t)
		lock := acquire(t, ctx, l, locker.Request{})
		end(server, lock)
		time.Sleep(time.Hour)
		match(t, lock.Err(), locker.ErrLost)
		check.AtMost(t, "renewals", len(at.list()), 1)
	})
}

// The repetitions of a failed renewal begin 50 ms apart, whatever the pauses of an earlier outage.
func TestEachOutageBeginsWithShortPauses(t *testing.T) {
	inMemory(t, watchdog.Config{}, func(t *testing.T, server *lockertest.Locker, l locker.Locker) {
		ctx, at := renewals(t)
		lock := acquire(t, ctx, l, locker.Request{})
		for outage := range 2 {
			for range 5 {
				server.FailRenew(io.EOF)
			}
			before := len(at.list())
			time.Sleep(ttl/3 + 3*time.Second)
			failed := at.list()[before:]
			check.Within(t, fmt.Sprintf("pause in outage %d", outage), failed[1]-failed[0], 45*time.Millisecond, 50*time.Millisecond)
		}
		release(t, lock)
	})
}

// A lock renewed for longer by its holder is not renewed before its time.
func TestRenewedByItsHolder(t *testing.T) {
	inMemory(t, watchdog.Config{}, func(t *testing.T, _ *lockertest.Locker, l locker.Locker) {
		ctx, at := renewals(t)
		lock := acquire(t, ctx, l, locker.Request{})
		match(t, lock.Renew(t.Context(), time.Hour))
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		check.AtMost(t, "renewals", len(at.list()), 2) // the holder's own, and the planned one
		time.Sleep(10 * time.Hour)
		release(t, lock)
	})
}

// Ten thousand locks need no goroutine while no renewal is due.
func TestTenThousandLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // not parallel: it counts goroutines
		l := locker.Must(watchdog.New(watchdog.Config{}))(lockertest.New())
		before := runtime.NumGoroutine()
		locks := acquireMany(t, t.Context(), l, 10_000, "", ttl)
		var most int
		for range 12 {
			time.Sleep(10 * time.Second)
			most = max(most, runtime.NumGoroutine())
		}
		check.AtMost(t, "goroutines", most, before+129) // workers and a timer
		synctest.Wait()
		// The runtime has some of its own, now and then.
		check.AtMost(t, "goroutines at rest", runtime.NumGoroutine(), before+3)
		release(t, locks...)
	})
}

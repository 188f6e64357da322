package retry_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	miniserver "github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// overRedis runs f in fake time with processes on one server, each with its own client and queues.
func overRedis(t *testing.T, f func(t *testing.T, m *memredis.Server, process func(retry.Config) locker.Locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		f(t, m, func(cfg retry.Config) locker.Locker {
			return wrap(t, locker.Must(single.New(clients.OpenMemory(t, m), single.Config{})), cfg)
		})
		check.Advance(time.Second)
		if channels := m.PubSubChannels(""); len(channels) != 0 {
			t.Errorf("subscribed to %v a second after the last waiter", channels)
		}
	})
}

// A waiter with a place at the server sends at most one command in 2 s. If the holder is another
// library's, it polls by the policy, and soon finds the key gone.
func TestPollingOverRedis(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		value  string // of the foreign holder; "": the holder is ours
		rarely bool
	}{
		"ours":      {"", true},
		"redislock": {"MDEyMzQ1Njc4OWFiY2RlZg", false},   // the base64 of 16 bytes
		"redsync":   {"MDEyMzQ1Njc4OWFiY2RlZg==", false}, // the same with padding
		"redis-py":  {"6f1ed002ab5595859014ebf0951522d9", false},
	} {
		t.Run(what, func(t *testing.T) {
			overRedis(t, func(t *testing.T, m *memredis.Server, process func(retry.Config) locker.Locker) {
				var commands atomic.Int32
				conn, err := m.Dial() // starts the server
				check.OK(t, errors.Join(err, conn.Close()))
				m.Server().SetPreHook(func(_ *miniserver.Peer, command string, _ ...string) bool {
					if command == "EVALSHA" {
						commands.Add(1)
					}
					return false
				})
				const watched = 20 * time.Second
				end := func() { m.Del(name) }
				if tt.value != "" {
					check.OK(t, m.Set(name, tt.value))
					m.SetTTL(name, time.Minute)
				} else {
					held := locker.Must(process(retry.Config{}).Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute}))
					end = func() { match(t, held.Release(t.Context()), nil, nil) }
				}
				acquired := make(chan error, 1)
				var lock *locker.Lock
				waiter := process(retry.Config{})
				go func() {
					var err error
					lock, err = waiter.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute})
					acquired <- err
				}()
				elapse(time.Second)
				commands.Store(0) // the first attempts, and the one after the subscription
				elapse(watched)
				if n := commands.Load(); tt.rarely != (n <= 10) {
					t.Errorf("%d attempts in %v", n, watched)
				}
				ended := time.Now()
				end()
				check.OK(t, <-acquired)
				check.AtMost(t, "time that it took", time.Since(ended), 500*ms)
				check.OK(t, lock.Release(t.Context()))
			})
		})
	}
}

// A waiter that polls a free lock, kept for another, gets no report of a lease's end.
func TestPollOfAKeptLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		l := wrap(t, locker.Must(single.New(clients.OpenMemory(t, m), single.Config{Fair: true})), retry.Config{})
		for member, score := range map[string]int64{"gone": 1, "~gone": 4e15 + 4*(time.Now().UnixMilli()+5000)} {
			locker.Must(m.ZAdd("{"+name+"}:waiters", float64(score), member))
		}
		var woken []locktrace.WakeReason
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Woken: func(_ context.Context, info locktrace.WokenInfo) { woken = append(woken, info.By) }})
		lock := locker.Must(l.Acquire(ctx, locker.Request{Name: name}))
		check.OK(t, lock.Release(t.Context()))
		check.EqualSlices(t, "the reasons", woken, []locktrace.WakeReason{locktrace.BySubscription, locktrace.ByBackoff})
	})
}

package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A release wakes a waiter with rare polls, however long it has waited.
func TestReleaseWakesOldWaiter(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]time.Duration{"for a second": time.Second, "for long": 20 * time.Second}, func(t *testing.T, waits time.Duration) {
		var nodes [2][]locker.Locker // of each process
		for range 3 {
			m := clients.NewMemory(t)
			for i := range nodes {
				nodes[i] = append(nodes[i], locker.Must(single.New(clients.OpenMemory(t, m), single.Config{})))
			}
		}
		holder := locker.Must(redlock.New(nodes[0], redlock.Config{}))
		rarely := retry.Config{Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }}
		waiter := locker.Chain(locker.Must(redlock.New(nodes[1], redlock.Config{})), locker.Must(retry.New(rarely)))
		req := locker.Request{Name: "job", TTL: time.Hour}
		held := locker.Must(holder.Acquire(t.Context(), req))
		got := make(chan time.Time, 1)
		go func() {
			lock := locker.Must(waiter.Acquire(t.Context(), req))
			got <- time.Now()
			check.OK(t, lock.Release(t.Context()))
		}()
		check.Advance(waits)
		released := time.Now()
		check.OK(t, held.Release(t.Context()))
		check.AtMost(t, "time from the release until the waiter had the lock", (<-got).Sub(released), 500*time.Millisecond)
		check.Advance(time.Second)
	})
}

// sited is a node with the address of its server.
type sited struct {
	*node
	address string
}

func (s sited) Traits() lease.Traits {
	return lease.Traits{Source: locktrace.Source{Address: s.address}}
}

// An outage names the servers of all nodes, not the one whose channel wakes the waiters: it may be
// healthy.
func TestOutageNamesAllServers(t *testing.T) {
	inMemory(t, 3, redlock.Config{}, func(t *testing.T, c *cluster) {
		var nodes []locker.Locker
		for i, n := range c.n {
			nodes = append(nodes, sited{n, fmt.Sprintf("server%d:6379", i)})
		}
		quorum := locker.Must(redlock.New(nodes, redlock.Config{AttemptTimeout: 10 * time.Second}))
		waiting := locker.Chain(quorum, locker.Must(retry.New(retry.Config{})))
		held := c.acquire(locker.Request{TTL: time.Hour})
		first := make(chan error, 1)
		go func() {
			first <- check.ErrOf(waiting.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, MaxWait: 20 * time.Second}))
		}()
		sleep(100 * ms)
		for _, n := range c.n[1:] {
			n.freeze()
		}
		err := check.ErrOf(waiting.Acquire(t.Context(), locker.Request{Name: name, TTL: ttl, MaxWait: 5 * time.Second}))
		match(t, err, locker.ErrMaxWait)
		matchNot(t, err, locker.ErrNotAcquired)
		check.Contains(t, "error", fmt.Sprint(err), "no answer from server0:6379,server1:6379,server2:6379 in")
		match(t, <-first, locker.ErrMaxWait)
		for _, n := range c.n {
			n.melt()
		}
		match(t, held.Release(t.Context()))
	})
}

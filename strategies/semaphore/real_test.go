package semaphore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// On a real server, over all clients at once, no more permits are held than there are, and requests
// of all sizes get theirs.
func TestManyProcessesOnARealServer(t *testing.T) {
	t.Parallel()
	const permits, rounds = 5, 15
	server := redistest.Start(t, redistest.Options{})
	var used, most atomic.Int64
	var wg sync.WaitGroup
	var mu sync.Mutex
	var fences []int64
	for i := range 2 * len(clients.All) {
		drv := clients.All[i%len(clients.All)].Open(t, server.Addr())
		l := process(locker.Must(semaphore.New(drv, semaphore.Config{Permits: permits})))
		for j := range 3 {
			wg.Go(func() {
				for range rounds {
					req := locker.Request{Name: name, Permits: 1 + (i+j)%permits, Fenced: true}
					err := locker.Do(t.Context(), l, req, func(_ context.Context, lock *locker.Lock) error {
						now := used.Add(int64(req.Permits))
						defer used.Add(-int64(req.Permits))
						most.Store(max(most.Load(), now))
						mu.Lock()
						defer mu.Unlock()
						fences = append(fences, lock.Fence())
						if now > permits {
							return fmt.Errorf("%d permits are held", now)
						}
						return nil
					})
					match(t, err)
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(fences)
	if n := len(slices.Compact(fences)); n != 2*len(clients.All)*3*rounds {
		t.Errorf("%d different tokens of %d holds", n, 2*len(clients.All)*3*rounds)
	}
	if most.Load() < 2 {
		t.Error("permits were never held at the same time")
	}
	if n := server.MustCommand(t, "EXISTS", name); n != int64(0) {
		t.Error("the key is still there")
	}
}

// On a server that is out of memory holders can renew and release: both need no memory.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	drv := clients.All[0].Open(t, server.Addr())
	l := locker.Must(semaphore.New(drv, semaphore.Config{Permits: 4}))
	req := locker.Request{TTL: time.Minute, Fenced: true}
	one, two := take(t, l, req), take(t, l, req)
	kept := take(t, l, locker.Request{TTL: time.Minute, MinHold: time.Minute})
	resumed, err := locker.Resume(t.Context(), l, two.Handle())
	match(t, err)
	server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpUndo})
	match(t, err)
	req.Name = name
	if _, err = l.Acquire(t.Context(), req); driver.CodeOf(err) != "OOM" {
		t.Errorf("acquire: %v, want OOM", err)
	}
	for _, lock := range []*locker.Lock{two, one} {
		match(t, lock.Renew(t.Context(), time.Hour))
		match(t, lock.Release(t.Context()))
	}
	release(t, kept)
	if s, err := l.Inspect(t.Context(), name); !s.Held || s.Holds != 0 || s.Free != 3 || err != nil {
		t.Errorf("state %+v, %v; want a kept hold", s, err)
	}
}

// A user without the permission to set an expiry gets an error, and leaves no key without one.
func TestExpiryNotPermitted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	server.MustCommand(t, "ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all", "-pexpireat")
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "locks", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { match(t, drv.Close()) })
	l := locker.Must(semaphore.New(drv, semaphore.Config{Permits: 3}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if lock, err := l.Acquire(ctx, locker.Request{Name: name, Fenced: true}); err == nil {
		t.Errorf("%v was acquired", lock)
	}
	if n := server.MustCommand(t, "EXISTS", name); n != int64(0) {
		t.Errorf("a key is left, with an expiry of %v ms", server.MustCommand(t, "PTTL", name))
	}
}

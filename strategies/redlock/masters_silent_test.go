package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A caller that goes on beside a frozen server leaves few calls there, also while those wait for a
// connection and end as never sent.
func TestFrozenMasterHasFewCalls(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	var mu sync.Mutex
	calls, most := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		calls += n
		most = max(most, calls)
	}
	counted := func(l locker.Locker) locker.Locker {
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			count(1)
			defer count(-1)
			return l.Acquire(ctx, req)
		})
	}
	var nodes []locker.Locker
	for i, s := range m.servers {
		client := redis.NewClient(&redis.Options{Addr: s.Addr(), PoolSize: 4, ContextTimeoutEnabled: true})
		t.Cleanup(func() { m.must(client.Close()) })
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		node := locker.Locker(locker.Must(single.New(drv, single.Config{AttemptTimeout: 200 * time.Millisecond})))
		if i == five-1 {
			node = counted(node)
		}
		nodes = append(nodes, node)
	}
	l := locker.Must(redlock.New(nodes, redlock.Config{AttemptTimeout: lenient.AttemptTimeout}))
	m.freeze(five - 1)
	for i, start := 0, time.Now(); time.Since(start) < time.Second; i++ {
		m.release(m.acquireSoon(l, locker.Request{Name: fmt.Sprintf("silent %d", i%4), TTL: 10 * time.Second}))
	}
	mu.Lock()
	if most > 256 {
		t.Errorf("%d acquires were under way at the frozen server at once", most)
	}
	mu.Unlock()
	m.thaw(five - 1)
	m.nothingStays()
	m.eventually(func() string {
		lock := m.acquireSoon(l, locker.Request{Name: "thawed", TTL: 10 * time.Second})
		defer m.release(lock)
		if m.value(five-1, "thawed") == nil {
			return "the server answers, and is not asked"
		}
		return ""
	})
}

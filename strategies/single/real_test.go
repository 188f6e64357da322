package single_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// On a server that is out of memory holders can renew and release, also after a resume was undone.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { match(t, drv.Close(), nil, nil) })
	l := locker.Must(single.New(drv, single.Config{}))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute, Fenced: true})
	match(t, err, nil, nil)
	resumed, err := locker.Resume(t.Context(), l, lock.Handle())
	match(t, err, nil, nil)
	server.MustCommand(t, "CONFIG", "SET", "maxmemory", "1")
	if _, err = l.Acquire(t.Context(), locker.Request{Name: "other"}); err == nil {
		t.Error("the server has memory for another lock")
	}
	// An existing counter needs no memory.
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence()})
	match(t, err, nil, nil)
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: resumed.Fence() + 1})
	if driver.CodeOf(err) != "OOM" {
		t.Errorf("raised the counter: %v; want OOM", err)
	}
	_, err = leaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpUndo})
	match(t, err, nil, nil)
	if left, ok := server.MustCommand(t, "PTTL", name).(int64); !ok || left < 30_000 || left > 60_000 {
		t.Errorf("%d ms are left of the lease", left)
	}
	match(t, lock.Renew(t.Context(), time.Hour), nil, nil)
	match(t, lock.Release(t.Context()), nil, nil)
}

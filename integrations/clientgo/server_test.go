package clientgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/integrations/clientgo"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func goredisAt(tb testing.TB, s *redistest.Server) driver.Driver {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), ContextTimeoutEnabled: true})
	tb.Cleanup(func() { c.Close() })
	return closed(tb, locker.Must(goredis.New(c)))
}

// closed closes drv after the test.
func closed(tb testing.TB, drv driver.Driver) driver.Driver {
	tb.Cleanup(func() { drv.Close() })
	return drv
}

// one returns a candidate's Lock over strategies/single.
func one(tb testing.TB, drv driver.Driver, identity string) *clientgo.Lock {
	tb.Helper()
	return newLock(tb, locker.Must(single.New(drv, single.Config{})), identity)
}

// One leads after another, in numbered terms: after a release, and after the key was deleted.
func TestServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	drv := goredisAt(t, server)
	a := run(t, one(t, drv, "a"), quick)
	first := a.leads(t)
	b := run(t, one(t, drv, "b"), quick)
	a.stop()
	second := b.leads(t)
	check.AtLeast(t, "second term", second.number, first.number+1)

	server.MustCommand(t, "DEL", "controller")
	wait(t, second.ctx.Done(), "the ctx of the work ends")
	check.Error(t, "the ctx of the work ended with", context.Cause(second.ctx), locker.ErrLost)
	third := run(t, one(t, drv, "c"), quick).leads(t)
	check.AtLeast(t, "third term", third.number, second.number+1)
}

// Under a dead process's identity, strategies/reentrant leads at once, and strategies/single waits
// for the end of the lease.
func TestRestartAtServer(t *testing.T) {
	t.Parallel()
	drv := goredisAt(t, redistest.Start(t, redistest.Options{}))
	again := locker.Must(reentrant.New(drv, reentrant.Config{Prefix: "reentrant:"}))
	long := record("a")
	long.LeaseDurationSeconds = int(2 * patience / time.Second)
	dead, restarted := newLock(t, again, "a"), newLock(t, again, "a")
	check.Must(t, dead.Create(t.Context(), long))
	run(t, restarted, quick).leads(t) // sooner than the lease of the dead process ends
	check.Is(t, newLock(t, again, "b").Create(t.Context(), record("b")), locker.ErrNotAcquired)

	dead, restarted = one(t, drv, "a"), one(t, drv, "a")
	check.Must(t, dead.Create(t.Context(), long))
	if got, _, err := restarted.Get(t.Context()); err != nil || got.HolderIdentity != "" {
		t.Errorf("the restarted candidate sees %+v, %v", got, err)
	}
	check.Is(t, restarted.Update(t.Context(), long), locker.ErrNotAcquired)
}

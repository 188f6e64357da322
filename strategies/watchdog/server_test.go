package watchdog_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// On a real server: a renewal is delayed on its way, the lock is released and acquired by another,
// and then the server executes the renewal. It does not extend the other's lease, and no renewal is
// sent after the release.
func TestLateRenewalOnARealServer(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	s := redistest.Start(t, redistest.Options{})
	proxy := faultproxy.Start(t, s.Addr())
	dial := func(addr string) *single.Locker {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		return locker.Must(single.New(drv, single.Config{}))
	}
	ours := locker.Must(watchdog.New(watchdog.Config{}))(dial(proxy.Addr()))

	const ttl = 3 * time.Second // on a busy machine, too
	renewed := make(chan error, 100)
	ctx := locktrace.With(t.Context(), &locktrace.Trace{Renewed: func(_ context.Context, info locktrace.RenewedInfo) { renewed <- info.Err }})
	lock := acquire(t, ctx, ours, locker.Request{TTL: ttl})
	for times := 0; times < 4; { // it is held for longer than its TTL; on a busy machine one may come to nothing
		if err := receive(t, renewed, "a renewal"); err == nil {
			times++
		}
		match(t, lock.Err())
	}
	value, err := s.Command("GET", name)
	match(t, err)
	renewal := func(args []string) bool {
		return faultproxy.Contains(name, value.(string), "3000")(args)
	}
	stalled := proxy.Add(faultproxy.Rule{Match: renewal, Fault: faultproxy.StallRequest})
	receive(t, stalled.Hit(), "the renewal that is held back")
	match(t, lock.Release(t.Context()))
	other := acquire(t, t.Context(), dial(s.Addr()), locker.Request{TTL: time.Hour})
	before := proxy.Count(renewal)
	stalled.Release()
	receive(t, stalled.Executed(), "the late renewal")
	held(t, other)
	match(t, other.Renew(t.Context(), time.Hour))

	// Another lock is renewed twice in that time; the first one is not.
	witness := acquire(t, ctx, ours, locker.Request{Name: "witness", TTL: ttl})
	for witnessed := 0; witnessed < 2; {
		if err := receive(t, renewed, "a renewal of the witness"); err == nil {
			witnessed++
		}
	}
	match(t, witness.Release(t.Context()))
	if n := proxy.Count(renewal) - before; n > 0 {
		t.Errorf("%d renewals were sent after the release", n)
	}
	match(t, other.Release(t.Context()))
}

// receive waits for a value from a channel, or for its close.
func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("%s: still not after 20 s", what)
		panic("not reached")
	}
}

package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

func TestNewRefusesNoClient(t *testing.T) {
	t.Parallel()
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		drv, err := goredis.New(client)
		var invalid *driver.InvalidError
		if drv != nil || !errors.As(err, &invalid) || invalid.What != "goredis.New client" {
			t.Errorf("New(%T(nil)) = %v, %v; want an InvalidError about the client", client, drv, err)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		client  redis.UniversalClient
		address string
	}{
		{redis.NewClient(&redis.Options{Addr: "192.0.2.1:1"}), "192.0.2.1:1"},
		{redis.NewClient(&redis.Options{Addr: "/run/redis.sock"}), "/run/redis.sock"},
		{redis.NewClient(&redis.Options{Addr: "project:region:instance", Dialer: new(fake).dial}), "project:region:instance"},
		{redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"192.0.2.2:1", "192.0.2.1:1"}}), "192.0.2.2:1,192.0.2.1:1"},
		{redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "192.0.2.2:1", "b": "192.0.2.1:1"}}), ""},
		{redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"192.0.2.1:1"}}), ""},
		{unknown(&redis.Options{Addr: "192.0.2.1:1"}), ""},
	} {
		want := driver.Info{Client: "go-redis", Address: tt.address}
		if got := newDriver(t, tt.client).Info(); got != want {
			t.Errorf("%T: Info() = %+v, want %+v", tt.client, got, want)
		}
	}
}

// The user's client is lent: its options stay, its hooks see the commands and the caller's values,
// and it outlives the driver.
func TestTheClientStaysTheUsers(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr(), ReadTimeout: 7 * time.Second, WriteTimeout: 8 * time.Second})
	type key struct{}
	seen := 0
	client.AddHook(sees(func(ctx context.Context) {
		if ctx.Value(key{}) == "value" {
			seen++
		}
	}))
	drv := newDriver(t, client)
	o := client.Options()
	if o.ReadTimeout != 7*time.Second || o.WriteTimeout != 8*time.Second || o.ContextTimeoutEnabled || o.MaxRetries != 3 {
		t.Errorf("options of the user's client changed to %+v", o)
	}
	ctx := context.WithValue(context.Background(), key{}, "value")
	cancelable, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, ctx := range []context.Context{ctx, cancelable, bounded.New(ctx, time.Hour), bounded.New(cancelable, time.Hour)} {
		locker.Must(drv.SetNX(ctx, "k", "v", time.Minute))
	}
	if seen != 4 {
		t.Errorf("the hook saw %d commands with the caller's value, want 4", seen)
	}
	check.Must(t, drv.Close())
	check.Error(t, "the user's client after the driver's Close", client.Ping(ctx).Err())
}

// An AutoPipeliner is a UniversalClient too; its asynchronous kind has the outcome only later.
func TestAutoPipeliner(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	pipeliner, err := client.AsyncAutoPipeline()
	check.Must(t, err)
	drv := newDriver(t, pipeliner)
	for _, want := range []bool{true, false} {
		if set, err := drv.SetNX(t.Context(), "k", "v", time.Minute); set != want || err != nil {
			t.Errorf("SetNX = %v, %v; want %v", set, err, want)
		}
	}
	locker.Must(m.Incr("n", 41))
	reply, err := drv.Eval(t.Context(), testScript, []string{"n"}, nil)
	if n, _ := reply.Int(0); n != 42 || err != nil {
		t.Errorf("Eval = %v, %v; want 42", n, err)
	}
}

// A Ring's channels live on several servers, and one connection cannot receive from all: waiters
// poll. So they do if the Ring is inside another type.
func TestRing(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": miniredis.RunT(t).Addr(), "b": miniredis.RunT(t).Addr()},
	})
	drv, wrapped := newDriver(t, ring), newDriver(t, struct{ *redis.Ring }{ring})
	for _, want := range []bool{true, false} {
		if set, err := drv.SetNX(t.Context(), "k", "v", time.Minute); set != want || err != nil {
			t.Errorf("SetNX = %v, %v; want %v", set, err, want)
		}
	}
	var wg sync.WaitGroup
	for i := range 40 { // they travel together, to both servers
		wg.Go(func() {
			r, err := drv.Eval(t.Context(), testScript, []string{fmt.Sprint("key", i)}, nil)
			if n, _ := r.Int(0); n != 1 || err != nil {
				t.Errorf("result %d is %d, %v; want 1", i, n, err)
			}
		})
	}
	wg.Wait()
	for _, drv := range []driver.Driver{drv, wrapped} {
		if _, err := drv.Subscribe(t.Context(), "c"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Subscribe: %v, want ErrUnsupported", err)
		}
	}
	check.Must(t, drv.Close())
	if _, err := drv.Subscribe(t.Context(), "c"); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Subscribe after Close: %v, want ErrClosed", err)
	}
}

package redigo_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/FZambia/sentinel/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// sentinelPool is the recipe of the package documentation.
func sentinelPool(t redistest.TB, addrs []string, master string, options ...redis.DialOption) *redis.Pool {
	sntl := &sentinel.Sentinel{
		Addrs:      slices.Clone(addrs), // it reorders them
		MasterName: master,
		Dial: func(addr string) (redis.Conn, error) {
			return redis.Dial("tcp", addr, redis.DialConnectTimeout(time.Second), redis.DialReadTimeout(time.Second))
		},
	}
	t.Cleanup(func() { sntl.Close() })
	return &redis.Pool{MaxIdle: 4, Dial: func() (redis.Conn, error) {
		addr, err := sntl.MasterAddr()
		if err != nil {
			return nil, err
		}
		c, err := redis.Dial("tcp", addr, options...)
		if err != nil {
			return nil, err
		}
		if ok, err := sentinel.TestRole(c, "master"); !ok || err != nil {
			c.Close()
			return nil, errors.Join(fmt.Errorf("%s is no master", addr), err)
		}
		return c, nil
	}}
}

// The master dies. Calls and subscriptions find the new one.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, redistest.Options{Password: "secret"})
	drv := open(t, sentinelPool(t, s.SentinelAddrs(), s.MasterName(), redis.DialPassword("secret")))
	set, err := drv.SetNX(t.Context(), "before", "v", time.Minute)
	if !set || err != nil {
		t.Fatalf("SetNX: %v, %v", set, err)
	}
	sub, err := drv.Subscribe(t.Context(), "c")
	must(t, err)
	defer sub.Close()
	wantWake(t, "confirmation", sub)

	old, err := s.KillMaster(t.Context())
	must(t, err)
	master, err := s.WaitMaster(t.Context(), old)
	must(t, err)
	eventually(t, "SetNX at the new master", func() bool {
		set, err := drv.SetNX(t.Context(), "after", "v", time.Minute)
		if err != nil && !driver.Passing(err) {
			t.Errorf("error %v is said not to pass", err)
		}
		return set
	})
	if got := master.MustCommand(t, "GET", "after"); got != "v" {
		t.Errorf("at the new master: %v", got)
	}
	wantWake(t, "new subscription", sub)
}

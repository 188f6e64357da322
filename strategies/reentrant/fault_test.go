package reentrant_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/internal/faulty"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// fault is what happens to one command.
type fault = faulty.Fault

// bench is a server of its own, whose time is the test's, and a Locker on it.
type bench struct {
	*reentrant.Locker
	drv *faulty.Driver
	m   *miniredis.Miniredis
}

// newBench is for synctest bubbles: no packet leaves the process.
func newBench(t *testing.T, cfg reentrant.Config) bench {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:6379", // never dialed
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
	drv := &faulty.Driver{Driver: locker.Must(goredis.New(client)), T: t}
	t.Cleanup(func() {
		drv.WaitLate()
		if err := drv.Close(); err != nil && !errors.Is(err, locker.ErrClosed) {
			t.Errorf("close: %v", err)
		}
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		m.Close()
	})
	return bench{locker.Must(reentrant.New(drv, cfg)), drv, m}
}

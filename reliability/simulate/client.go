package simulate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	goredisclient "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// client is one client process: a driver for each server.
type client struct {
	drivers []driver.Driver
	closes  []func() error
	log     log
	paused  workload.Episode // it makes no progress
}

// sleep sleeps, and goes on sleeping while the client is paused.
func (c *client) sleep(d time.Duration) {
	if d > 0 {
		sleep(d)
		c.paused.Wait(sleep)
	}
}

// work runs the turns of a worker of this client, one after another, until the time is up.
func (c *client) work(w *workload.Client, plan Worker) {
	ctx := context.Background()
	if plan.Logs {
		ctx = locktrace.With(ctx, c.log.trace())
	}
	for _, t := range plan.Turns {
		c.sleep(t.Pause)
		if time.Now().After(w.Until) {
			return
		}
		_ = w.Turn(ctx, t)
	}
}

func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // fake time

// connect opens a client of a provider over a link. number varies its options.
func (c *client) connect(provider string, l *link, number int) error {
	open, ok := map[string]func(*link, int) (driver.Driver, func() error, error){
		"goredis": openGoredis, "rueidis": openRueidis, "redigo": openRedigo,
	}[provider]
	if !ok {
		return fmt.Errorf("no provider %q", provider)
	}
	drv, closeClient, err := open(l, number)
	if err != nil {
		return err
	}
	c.drivers = append(c.drivers, drv)
	c.closes = append(c.closes, closeClient)
	return nil
}

// close closes all drivers, at once, and then the clients. Between them it lets things settle:
// rueidis waits for an answer under a mutex, and fake time stands still while another goroutine
// waits for the mutex.
func (c *client) close() error {
	errs := make([]error, len(c.drivers))
	var wg sync.WaitGroup
	for i, drv := range c.drivers {
		wg.Go(func() { errs[i] = drv.Close() })
	}
	wg.Wait()
	sleep(time.Second)
	for i, closeClient := range c.closes {
		errs[i] = errors.Join(errs[i], closeClient())
	}
	return errors.Join(errs...)
}

// address is never dialed: each client has its link.
const address = "127.0.0.1:6379"

func openGoredis(l *link, number int) (driver.Driver, func() error, error) {
	c := goredisclient.NewClient(&goredisclient.Options{
		Addr:     address,
		PoolSize: 1000, // if callers had to queue, it would take timers from a pool shared by all bubbles
		// Its handshake fails under a mutex of all dials, and fake time would stand still.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ContextTimeoutEnabled:    number%2 == 0,
		Dialer:                   func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) },
	})
	drv, err := goredis.New(c)
	return drv, c.Close, err
}

func openRueidis(l *link, _ int) (driver.Driver, func() error, error) {
	const small = 4 << 10 // the buffers of all clients of a schedule would else be most of its memory
	c, err := rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress: []string{address}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
		ReadBufferEachConn: small, WriteBufferEachConn: small, RingScaleEachConn: 6,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return l.dial(ctx)
		},
	})
	if err != nil {
		return nil, nil, err
	}
	drv, err := rueidis.New(c)
	return drv, func() error { c.Close(); return nil }, err
}

func openRedigo(l *link, _ int) (driver.Driver, func() error, error) {
	dialer := redis.DialContextFunc(func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) })
	pool := &redis.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", address, dialer)
	}}
	drv, err := redigo.New(pool)
	return drv, pool.Close, err
}

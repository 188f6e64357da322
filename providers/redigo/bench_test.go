package redigo_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

// BenchmarkCycle is one uncontended acquire and release, SET NX PX and a compare-and-delete script,
// beside what redigo alone needs for it. "bounded" contexts have a deadline, "cancellable" ones a
// parent that can end too.
func BenchmarkCycle(b *testing.B) {
	addr := redistest.Start(b, redistest.Options{}).Addr()
	const token = "0123456789abcdef0123456789abcdef"
	type cycle func(key string) error
	bare := func(pool redigo.Pool, do func(c redis.Conn, command string, args ...any) (any, error)) cycle {
		return func(key string) error {
			c := pool.Get()
			_, err := do(c, "SET", key, token, "NX", "PX", 30_000)
			c.Close()
			if err != nil {
				return err
			}
			c = pool.Get()
			defer c.Close()
			_, err = do(c, "EVALSHA", delOwn.Digest(), 1, key, token)
			return err
		}
	}
	through := func(drv driver.Driver, parent context.Context) cycle {
		return func(key string) error {
			//realtime:ok a benchmark
			ctx := driver.Bound(parent, 3*time.Second)
			_, err := drv.SetNX(ctx, key, token, 30*time.Second)
			ctx.Stop()
			if err != nil {
				return err
			}
			//realtime:ok a benchmark
			ctx = driver.Bound(parent, 3*time.Second)
			defer ctx.Stop()
			_, err = drv.Eval(ctx, delOwn, []string{key}, []string{token})
			return err
		}
	}
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", addr) }
	pools := []*redis.Pool{poolKinds["DialContext"](dial), poolKinds["Dial"](dial)}
	for _, p := range pools {
		p.MaxIdle = 32
	}
	cluster := redistest.StartCluster(b, 3, redistest.Options{})
	nodes := &redisc.Cluster{StartupNodes: cluster.Addrs(), CreatePool: func(addr string, options ...redis.DialOption) (*redis.Pool, error) {
		p := clients.RedigoPool(addr, options...)
		p.MaxIdle = 32
		return p, nil
	}}
	must(b, nodes.Refresh())
	drivers := make([]driver.Driver, 3)
	for i, p := range []redigo.Pool{pools[0], pools[1], nodes} {
		drivers[i] = open(b, p)
		for k := range 16 {
			_, err := drivers[i].Eval(b.Context(), delOwn, []string{fmt.Sprint("k", k)}, []string{token})
			must(b, err)
		}
	}
	cycles := []struct {
		name string
		run  cycle
	}{
		{"redigo/Do", bare(pools[0], redis.Conn.Do)},
		{"redigo/DoContext", bare(pools[0], func(c redis.Conn, command string, args ...any) (any, error) {
			return redis.DoContext(c, cancellable, command, args...)
		})},
		{"DialContext/bounded", through(drivers[0], context.Background())},
		{"DialContext/cancellable", through(drivers[0], cancellable)},
		{"Dial/bounded", through(drivers[1], context.Background())},
		{"Dial/cancellable", through(drivers[1], cancellable)},
		{"cluster/redisc", bare(nodes, func(c redis.Conn, command string, args ...any) (any, error) {
			if command == "EVALSHA" {
				if err := redisc.BindConn(c, args[2].(string)); err != nil {
					return nil, err
				}
			}
			return c.Do(command, args...)
		})},
		{"cluster/bounded", through(drivers[2], context.Background())},
		{"cluster/cancellable", through(drivers[2], cancellable)},
	}
	for _, workers := range []int{1, 16} {
		for _, c := range cycles {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, workers), func(b *testing.B) {
				b.ReportAllocs()
				var n atomic.Int64
				var wg sync.WaitGroup
				for w := range workers {
					wg.Go(func() {
						key := fmt.Sprint("k", w)
						for n.Add(1) <= int64(b.N) {
							if err := c.run(key); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

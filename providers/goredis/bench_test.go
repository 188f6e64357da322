package goredis_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// BenchmarkCycle is one uncontended acquire and release, SET NX PX and a compare-and-delete script, beside what go-redis
// needs for the same two commands. Bounded is what strategies do; Cancellable what they do for a caller whose ctx can end.
func BenchmarkCycle(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	script := driver.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
	bounded := func(ctx context.Context) (context.Context, func()) {
		c := driver.Bound(ctx, 3*time.Second)
		return c, c.Stop
	}
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	clients := []struct {
		name string
		opts redis.Options
	}{
		{"", redis.Options{}},
		{"ContextTimeoutEnabled", redis.Options{ContextTimeoutEnabled: true}},
	}
	type cycle func(key string) error
	for _, c := range clients {
		c.opts.Addr = server.Addr()
		client := redis.NewClient(&c.opts)
		defer client.Close()
		drv, err := goredis.New(client)
		if err != nil {
			b.Fatal(err)
		}
		defer drv.Close()
		if _, err := drv.Eval(b.Context(), script, []string{"k"}, []string{"v"}); err != nil {
			b.Fatal(err)
		}
		through := func(parent context.Context) cycle {
			return func(key string) error {
				ctx, stop := bounded(parent)
				_, err := drv.SetNX(ctx, key, "0123456789abcdef0123456789abcdef", 30*time.Second)
				stop()
				if err != nil {
					return err
				}
				ctx, stop = bounded(parent)
				defer stop()
				_, err = drv.Eval(ctx, script, []string{key}, []string{"0123456789abcdef0123456789abcdef"})
				return err
			}
		}
		cycles := []struct {
			name string
			run  cycle
		}{
			{"Client", func(key string) error {
				ctx := context.Background()
				if err := client.SetNX(ctx, key, "0123456789abcdef0123456789abcdef", 30*time.Second).Err(); err != nil {
					return err
				}
				return client.EvalSha(ctx, script.Digest(), []string{key}, "0123456789abcdef0123456789abcdef").Err()
			}},
			{"Driver/Bounded", through(context.Background())},
			{"Driver/Cancellable", through(cancellable)},
		}
		for _, c2 := range cycles {
			for _, workers := range []int{1, 16} {
				b.Run(fmt.Sprintf("%s%s/goroutines=%d", c.name, c2.name, workers), func(b *testing.B) {
					b.ReportAllocs()
					b.SetParallelism(max(1, workers/2))
					var n atomic.Int64
					if workers == 1 {
						for b.Loop() {
							if err := c2.run("one"); err != nil {
								b.Fatal(err)
							}
						}
						return
					}
					b.RunParallel(func(pb *testing.PB) {
						key := "k" + strconv.FormatInt(n.Add(1), 10)
						for pb.Next() {
							if err := c2.run(key); err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
			}
		}
	}
}

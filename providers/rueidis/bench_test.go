package rueidis_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

const token = "0123456789abcdef0123456789abcdef"

// BenchmarkCycle is one uncontended acquire and release, SET NX PX and a compare-and-delete script,
// beside what the bare client needs for the same two commands. Bounded is what strategies do;
// Cancellable what they do for a caller whose ctx can end, to be compared with a client that has
// such a ctx too, or one with a timeout for each command.
func BenchmarkCycle(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	background := context.Background()
	cancellable, cancel := context.WithCancel(background)
	defer cancel()
	bounded := func(parent context.Context) (context.Context, func()) {
		//realtime:ok a benchmark
		ctx := driver.Bound(parent, 3*time.Second)
		return ctx, ctx.Stop
	}
	as := func(parent context.Context) (context.Context, func()) { return parent, func() {} }
	timeout := func(parent context.Context) (context.Context, func()) {
		//realtime:ok a benchmark
		return context.WithTimeout(parent, 3*time.Second)
	}
	for _, c := range []struct {
		name   string
		bare   bool
		parent context.Context
		each   func(context.Context) (context.Context, func())
	}{
		{"Client/Background", true, background, as},
		{"Driver/Bounded", false, background, bounded},
		{"Client/Cancellable", true, cancellable, as},
		{"Client/CancellableWithTimeout", true, cancellable, timeout},
		{"Driver/Cancellable", false, cancellable, bounded},
	} {
		for _, workers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", c.name, workers), func(b *testing.B) {
				client := newClient(b, redis.ClientOption{InitAddress: []string{server.Addr()}})
				drv := newDriver(b, client)
				step := func(send func(context.Context) error) error {
					ctx, stop := c.each(c.parent)
					defer stop()
					return send(ctx)
				}
				cycle := func(key string) error {
					if err := step(func(ctx context.Context) error {
						if !c.bare {
							_, err := drv.SetNX(ctx, key, token, 30*time.Second)
							return err
						}
						return client.Do(ctx, client.B().Set().Key(key).Value(token).Nx().PxMilliseconds(30000).Build()).Error()
					}); err != nil {
						return err
					}
					return step(func(ctx context.Context) error {
						if !c.bare {
							_, err := drv.Eval(ctx, compare, []string{key}, []string{token})
							return err
						}
						return client.Do(ctx, client.B().Evalsha().Sha1(compare.Digest()).Numkeys(1).Key(key).Arg(token).Build()).Error()
					})
				}
				if _, err := drv.Eval(c.parent, compare, []string{"one"}, nil); err != nil { // the bare client has no EVAL
					b.Fatal(err)
				}
				for range 100 { // the driver is careful at first
					if err := cycle("one"); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				if workers == 1 {
					for b.Loop() {
						if err := cycle("one"); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.SetParallelism(workers / 2)
				var n atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					key := "k" + strconv.FormatInt(n.Add(1), 10)
					for pb.Next() {
						if err := cycle(key); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

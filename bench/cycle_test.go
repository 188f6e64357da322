package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// BenchmarkChain is BenchmarkCycle through holdfast.New, the chain of most programs, with up to 256
// callers at once.
func BenchmarkChain(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	for _, c := range clients {
		for _, cancellable := range []bool{false, true} {
			for _, goroutines := range []int{1, 4, 16, 64, 256} {
				b.Run(fmt.Sprintf("%s/ctx=%s/goroutines=%d", c.name, ctxName(cancellable), goroutines), func(b *testing.B) {
					ctx := context.Background()
					if cancellable {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(ctx)
						defer cancel()
					}
					drv, bare := c.open(b, server.Addr())
					defer drv.Close()
					compare(ctx, b, locker.Must(holdfast.New(drv, holdfast.Config{})), bare, goroutines, false)
				})
			}
		}
	}
}

// BenchmarkCycle is acquire and release of a free name, beside SET NX PX and compare-and-delete by
// the bare client.
func BenchmarkCycle(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	for _, c := range clients {
		for _, goroutines := range []int{1, 16} {
			for _, cancellable := range []bool{false, true} {
				for _, fenced := range []bool{false, true} {
					name := fmt.Sprintf("%s/goroutines=%d/ctx=%s/fenced=%t", c.name, goroutines, ctxName(cancellable), fenced)
					b.Run(name, func(b *testing.B) { cycle(b, c, server.Addr(), goroutines, cancellable, fenced) })
				}
			}
		}
	}
}

func ctxName(cancellable bool) string {
	if cancellable {
		return "cancellable"
	}
	return "background"
}

func cycle(b *testing.B, c client, addr string, goroutines int, cancellable, fenced bool) {
	ctx := context.Background()
	if cancellable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
	}
	drv, bare := c.open(b, addr)
	defer drv.Close()
	compare(ctx, b, locker.Must(single.New(drv, single.Config{})), bare, goroutines, fenced)
}

func compare(ctx context.Context, b *testing.B, l locker.Locker, bare bareCycle, goroutines int, fenced bool) {
	keys := make([]string, goroutines)
	for g := range keys {
		keys[g] = fmt.Sprintf("bench:%d", g)
	}
	pair(b, goroutines,
		func(g int) error {
			lock, err := l.Acquire(ctx, locker.Request{Name: keys[g], TTL: ttl, Fenced: fenced})
			if err != nil {
				return err
			}
			return lock.Release(ctx)
		},
		func(g int) error { return bare(ctx, keys[g], lease.NewToken()) },
	)
}

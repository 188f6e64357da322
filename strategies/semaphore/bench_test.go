package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// BenchmarkPermits measures an acquire with its release, a renewal and a refusal, where all other
// permits are held: their number makes hardly any difference.
func BenchmarkPermits(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	drv := clients.All[0].Open(b, server.Addr())
	ctx := context.Background()
	must := func(lock *locker.Lock, err error) *locker.Lock {
		check.Must(b, err)
		return lock
	}
	for _, permits := range []int{1, 100, 10_000} {
		l := locker.Must(semaphore.New(drv, semaphore.Config{Permits: permits}))
		req := locker.Request{Name: fmt.Sprintf("bench:%d", permits), TTL: time.Hour}
		for i := range permits - 1 {
			req.TTL = time.Hour + time.Duration(i)*time.Second
			must(l.Acquire(ctx, req))
		}
		b.Run(fmt.Sprintf("permits=%d/cycle", permits), func(b *testing.B) {
			for b.Loop() {
				check.Must(b, must(l.Acquire(ctx, req)).Release(ctx))
			}
		})
		last := must(l.Acquire(ctx, req))
		b.Run(fmt.Sprintf("permits=%d/renew", permits), func(b *testing.B) {
			for b.Loop() {
				check.Must(b, last.Renew(ctx, 0))
			}
		})
		b.Run(fmt.Sprintf("permits=%d/refused", permits), func(b *testing.B) {
			refused := locker.Request{Name: req.Name, NoWait: true}
			for b.Loop() {
				if _, err := l.Acquire(ctx, refused); err == nil {
					b.Fatal("there are more permits than there should be")
				}
			}
		})
		check.Must(b, last.Release(ctx))
	}
}

package rwhash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// BenchmarkRead measures acquire and release of one more reader beside others: their number makes
// no difference. refused is a writer's attempt beside them.
func BenchmarkRead(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	drv := clients.All[0].Open(b, server.Addr())
	l := locker.Must(rwhash.New(drv, rwhash.Config{}))
	ctx := context.Background()
	for _, readers := range []int{0, 1, 100, 10_000} {
		read := locker.Request{Name: fmt.Sprintf("bench:%d", readers), Mode: locker.Shared, TTL: time.Hour}
		for range readers {
			locker.Must(l.Acquire(ctx, read))
		}
		for name, ttl := range map[string]time.Duration{"": time.Minute, "/last": 2 * time.Hour} { // the reader that ends last goes
			read.TTL = ttl
			b.Run(fmt.Sprintf("readers=%d%s", readers, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					lock, err := l.Acquire(ctx, read)
					if err == nil {
						err = lock.Release(ctx)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

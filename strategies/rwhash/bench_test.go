package rwhash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// BenchmarkRead measures acquire and release of one more reader beside others: their number makes
// no difference. refused is a writer's attempt beside them.
func BenchmarkRead(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()
	l := locker.Must(rwhash.New(drv, rwhash.Config{}))
	ctx := context.Background()
	for _, readers := range []int{0, 1, 100, 10_000} {
		read := locker.Request{Name: fmt.Sprintf("bench:%d", readers), Mode: locker.Shared, TTL: time.Hour}
		for range readers {
			if _, err := l.Acquire(ctx, read); err != nil {
				b.Fatal(err)
			}
		}
		read.TTL = time.Minute
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
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
		b.Run(fmt.Sprintf("readers=%d/last", readers), func(b *testing.B) {
			last := read
			last.TTL = 2 * time.Hour // the reader that ends last goes
			for b.Loop() {
				lock, err := l.Acquire(ctx, last)
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

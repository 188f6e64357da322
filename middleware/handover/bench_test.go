package handover_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// lasting is a Locker without a server; its leases last for an hour.
type lasting struct{}

func (l lasting) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return locker.NewLock(ctx, lease.HoldInfo{Name: req.Name, Token: "token", TTL: time.Hour, Deadline: time.Now().Add(time.Hour)}, l), nil
}

func (lasting) Do(_ context.Context, op lease.Op) (lease.Result, error) {
	return lease.Result{Deadline: time.Now().Add(op.TTL)}, nil
}

// BenchmarkHandOver measures a hand-over, one operation each, without a server.
func BenchmarkHandOver(b *testing.B) {
	for _, waiters := range []int{2, 64} {
		b.Run(strconv.Itoa(waiters), func(b *testing.B) {
			b.ReportAllocs()
			l := handingOver(lasting{}, time.Hour)
			var turns atomic.Int64
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() {
					for turns.Add(1) <= int64(b.N) {
						cycle(b, l)
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkFree measures an acquire and a release of an uncontended lock, without a server.
func BenchmarkFree(b *testing.B) {
	b.ReportAllocs()
	l := handingOver(lasting{}, time.Hour)
	for range b.N {
		cycle(b, l)
	}
}

func cycle(b *testing.B, l locker.Locker) {
	ctx := context.Background()
	lock, err := l.Acquire(ctx, locker.Request{Name: name})
	if err == nil {
		err = lock.Release(ctx)
	}
	if err != nil {
		b.Error(err)
	}
}

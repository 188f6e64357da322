package retry_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// free is a Locker without a server: every acquire succeeds.
type free struct{}

func (free) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return locker.NewLock(ctx, lease.HoldInfo{Name: req.Name, Token: "token"}, free{}), nil
}

func (free) Do(context.Context, lease.Op) (lease.Result, error) { return lease.Result{}, nil }

// BenchmarkUncontended measures what retry adds to an acquire and a release without contention.
func BenchmarkUncontended(b *testing.B) {
	for _, bm := range []struct {
		name string
		l    locker.Locker
	}{
		{"bare", free{}},
		{"retry", locker.Must(retry.New(retry.Config{}))(free{})},
	} {
		var names atomic.Int64
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cycle(b, bm.l, name, 0)
			}
		})
		b.Run(bm.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				name := strconv.Itoa(int(names.Add(1)))
				for pb.Next() {
					cycle(b, bm.l, name, 0)
				}
			})
		})
	}
}

func cycle(b *testing.B, l locker.Locker, name string, work int) {
	ctx := context.Background()
	lock, err := l.Acquire(ctx, locker.Request{Name: name})
	for range work {
		err = errors.Join(err, lock.Renew(ctx, 0))
	}
	if err = errors.Join(err, lock.Release(ctx)); err != nil {
		b.Error(err)
	}
}

// BenchmarkHandover passes a lock from goroutine to goroutine over a server in memory, one
// operation a turn. Each holds it for ten round trips, so the next in line is refused and waits.
// attempts/op counts the attempts of a turn: the one that succeeds, and the refused ones of the
// next in line.
func BenchmarkHandover(b *testing.B) {
	for _, waiters := range []int{2, 16} {
		b.Run(strconv.Itoa(waiters), func(b *testing.B) {
			server, err := miniredis.Run()
			if err != nil {
				b.Fatal(err)
			}
			defer server.Close()
			client := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer client.Close()
			drv := locker.Must(goredis.New(client))
			defer drv.Close()
			inner := locker.Must(single.New(drv, single.Config{}))
			var attempts, turns atomic.Int64
			l := locker.Must(retry.New(retry.Config{}))(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				attempts.Add(1)
				return inner.Acquire(ctx, req)
			}))
			b.ResetTimer()
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() {
					for turns.Add(1) <= int64(b.N) {
						cycle(b, l, name, 10)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(attempts.Load())/float64(b.N), "attempts/op")
		})
	}
}

// BenchmarkOwners acquires and releases a reentrant lock while others, each of an owner of its own, wait
// for it: the cost does not grow with their number.
func BenchmarkOwners(b *testing.B) {
	for _, waiters := range []int{1, 100, 10000} {
		b.Run(strconv.Itoa(waiters), func(b *testing.B) {
			l := locker.Must(retry.New(retry.Config{}))(reentering{locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				if !req.NoWait {
					return nil, &locker.ContentionError{Name: name}
				}
				return locker.NewLock(ctx, lease.HoldInfo{Name: name, Token: "token", Owner: req.Owner}, free{}), nil
			})})
			ctx, cancel := context.WithCancel(context.Background())
			var waiting, begun sync.WaitGroup
			begun.Add(waiters)
			for i := range waiters {
				var once sync.Once
				waits := locktrace.With(ctx, &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) { once.Do(begun.Done) }})
				waiting.Go(func() { _, _ = l.Acquire(waits, locker.Request{Name: name, Owner: strconv.Itoa(i)}) })
			}
			begun.Wait()
			for b.Loop() {
				lock := locker.Must(l.Acquire(ctx, locker.Request{Name: name, Owner: "another", NoWait: true}))
				if err := lock.Release(ctx); err != nil {
					b.Fatal(err)
				}
			}
			cancel()
			waiting.Wait()
		})
	}
}

package retry_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// free is a Locker without a server: every acquire succeeds.
type free struct{}

func (free) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return locker.NewLock(ctx, locker.Grant{Name: req.Name, Token: "token"}, free{}), nil
}

func (free) Do(context.Context, locker.Op) (locker.Term, error) { return locker.Term{}, nil }

// BenchmarkUncontended is what retry adds to an acquire and a release that nobody competes with.
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
				cycle(b, bm.l, "job")
			}
		})
		b.Run(bm.name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				name := strconv.Itoa(int(names.Add(1)))
				for pb.Next() {
					cycle(b, bm.l, name)
				}
			})
		})
	}
}

func cycle(b *testing.B, l locker.Locker, name string) {
	lock, err := l.Acquire(context.Background(), locker.Request{Name: name})
	if err != nil {
		b.Fatal(err)
	}
	if err := lock.Release(context.Background()); err != nil {
		b.Fatal(err)
	}
}

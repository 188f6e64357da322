package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// granting is a Locker without a server: every acquire, renewal and release succeeds.
type granting struct{}

func (granting) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return grant(ctx, req, granting{}), nil
}

func grant(ctx context.Context, req locker.Request, l lease.Lease) *locker.Lock {
	return locker.NewLock(ctx, lease.Grant{Name: req.Name, Token: "token", TTL: req.TTL, Deadline: time.Now().Add(req.TTL)}, l)
}

func (granting) Do(_ context.Context, op lease.Op) (lease.Term, error) {
	return lease.Term{Deadline: time.Now().Add(op.TTL)}, nil
}

// BenchmarkCycle measures what the watchdog adds to an acquire and a release, while it watches
// 10,000 other locks.
func BenchmarkCycle(b *testing.B) {
	dog := locker.Must(watchdog.New(watchdog.Config{}))(granting{})
	for i := range 10_000 {
		lock := locker.Must(dog.Acquire(b.Context(), locker.Request{Name: fmt.Sprint(i), TTL: time.Hour}))
		b.Cleanup(func() { _ = lock.Release(context.Background()) })
	}
	for _, bm := range []struct {
		name string
		l    locker.Locker
	}{{"bare", granting{}}, {"watched", dog}} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lock := locker.Must(bm.l.Acquire(b.Context(), locker.Request{Name: name, TTL: time.Minute}))
				check.Must(b, lock.Release(b.Context()))
			}
		})
	}
}

// BenchmarkMemory measures the memory of a watched lock, without the Lock itself.
func BenchmarkMemory(b *testing.B) {
	for _, bm := range []struct {
		name string
		l    locker.Locker
	}{{"bare", granting{}}, {"watched", locker.Must(watchdog.New(watchdog.Config{}))(granting{})}} {
		b.Run(bm.name, func(b *testing.B) {
			locks := make([]*locker.Lock, b.N)
			before := heap()
			for i := range locks {
				locks[i] = locker.Must(bm.l.Acquire(b.Context(), locker.Request{Name: name, TTL: time.Hour}))
			}
			b.ReportMetric(float64(heap()-before)/float64(b.N), "B/lock")
			b.StopTimer()
			for _, lock := range locks {
				_ = lock.Release(b.Context())
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkRenewal measures the processor time of one renewal: a thousand locks are renewed as fast
// as one core can.
func BenchmarkRenewal(b *testing.B) {
	renewed := make(chan struct{}, 1)
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	ctx := locktrace.With(b.Context(), &locktrace.Trace{Renewed: func(context.Context, locktrace.RenewedInfo) {
		select {
		case <-left:
		default:
			select {
			case renewed <- struct{}{}:
			default:
			}
		}
	}})
	dog := locker.Must(watchdog.New(watchdog.Config{}))(granting{})
	b.ResetTimer()
	for range 1000 {
		//realtime:ok a benchmark
		lock := locker.Must(dog.Acquire(ctx, locker.Request{Name: name, TTL: 3 * time.Millisecond}))
		b.Cleanup(func() { _ = lock.Release(context.Background()) })
	}
	<-renewed
}

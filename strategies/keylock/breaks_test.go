package keylock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// In a strict order a waiter whose connections break again and again returns to its place: those
// behind it pass it for some milliseconds only.
func TestStrictOrderOutlastsBreaks(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, fairLocks, func(t *testing.T, open opener) {
		m, p := clients.Proxied(t)
		process := func(addr string) locker.Locker {
			drv := clients.All[0].OpenOn(t, m.Net, addr)
			return locker.Chain(locker.Must(open(drv)), locker.Must(retry.New(retry.Config{})))
		}
		var longest time.Duration
		use := func(ctx context.Context, l locker.Locker) {
			lock, err := l.Acquire(ctx, locker.Request{Name: name})
			if err != nil {
				return
			}
			<-time.After(5 * time.Millisecond)
			_ = lock.Release(context.WithoutCancel(ctx))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var work sync.WaitGroup
		for range 3 {
			l := process(m.Addr())
			work.Go(func() {
				for ctx.Err() == nil {
					use(ctx, l)
				}
			})
		}
		work.Go(func() {
			for ctx.Err() == nil {
				<-time.After(50 * time.Millisecond)
				p.CutAll()
			}
		})
		broken := process(p.Addr())
		for ctx.Err() == nil {
			began := time.Now()
			use(context.WithoutCancel(ctx), broken)
			longest = max(longest, time.Since(began))
		}
		work.Wait()
		check.AtMost(t, "longest wait", longest, 200*time.Millisecond)
	})
}

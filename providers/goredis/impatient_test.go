package goredis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Callers who give up while all connections are in use have sent nothing, and leave nothing behind.
// Those whose command was sent learn its outcome.
func TestImpatientCallers(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]bool{"defaults": false, "obeys": true}, func(t *testing.T, obeys bool) {
		clients.Bubble(t, func(t *testing.T) {
			const pool, callers = 4, 300
			m, p := clients.Proxied(t)
			drv := newDriver(t, redis.NewClient(&redis.Options{
				Addr: p.Addr(), Dialer: m.Net.Dial, PoolSize: pool, ContextTimeoutEnabled: obeys,
			}))
			if _, err := drv.SetNX(t.Context(), "first", "v", time.Minute); err != nil {
				t.Fatal(err)
			}
			p.Freeze()
			var mu sync.Mutex
			var wg sync.WaitGroup
			notSent, late, won := 0, 0, 0
			for range callers {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					_, err := drv.SetNX(ctx, "k", "v", time.Minute)
					mu.Lock()
					defer mu.Unlock()
					pending, ok := errors.AsType[*driver.PendingError](err)
					switch {
					case ok:
						pending.OnAnswer(func(v any, err error) {
							mu.Lock()
							defer mu.Unlock()
							if late++; err == nil && v == true {
								won++
							}
						})
					case errors.Is(err, driver.ErrNotSent) && errors.Is(err, context.DeadlineExceeded):
						notSent++
					default:
						t.Errorf("SetNX at a frozen server: %v", err)
					}
				})
			}
			wg.Wait()
			p.Thaw()
			synctest.Wait()
			if notSent < callers-pool || notSent+late != callers || won > 1 {
				t.Errorf("%d of %d calls were not sent, %d were answered late, %d of them won; want all but %d not sent, one winner at most",
					notSent, callers, late, won, pool)
			}
		})
	})
}

// Renewals and releases pass acquires that wait for a connection.
func TestUrgentCallsPassAcquires(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		const pool, callers, each = 2, 200, 20 * time.Millisecond
		f := &fake{answer: func([]string) string {
			<-time.After(each)
			return ":1\r\n"
		}}
		opts := f.options()
		opts.PoolSize = pool
		drv := newDriver(t, redis.NewClient(opts))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range callers {
			go func() { _ = operations["Eval"](ctx, drv) }()
		}
		<-time.After(each / 2)
		urgent := &driver.Bounded{Urgent: true}
		began := time.Now()
		urgent.Start(t.Context(), began.Add(patience))
		defer urgent.Stop()
		err := operations["Eval"](urgent, drv)
		if took := time.Since(began); err != nil || took != each/2+each {
			t.Errorf("an urgent call: %v after %v; want it after the calls under way, in %v", err, took, each/2+each)
		}
	})
}

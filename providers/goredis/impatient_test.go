package goredis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	strategy "github.com/holdfast-go/holdfast/strategies/single"
)

// Callers who give up while all connections are in use have sent nothing, and leave nothing behind.
// Those whose command was sent hear what came of it.
func TestImpatientCallers(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]redis.Options{"defaults": {}, "obeys": {ContextTimeoutEnabled: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const pool, callers = 4, 300
			server := redistest.Start(t, redistest.Options{})
			opts := options
			opts.Addr, opts.PoolSize = server.Addr(), pool
			drv := newDriver(t, redis.NewClient(&opts))
			if _, err := drv.SetNX(t.Context(), "warm", "v", time.Minute); err != nil {
				t.Fatal(err)
			}
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var wg sync.WaitGroup
			notSent, late := 0, make(chan bool, callers)
			for range callers {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					_, err := drv.SetNX(ctx, "k", "v", time.Minute)
					pending, ok := errors.AsType[*driver.PendingError](err)
					switch {
					case ok:
						pending.OnAnswer(func(v any, err error) { late <- err == nil && v == true })
					case errors.Is(err, driver.ErrNotSent) && errors.Is(err, context.DeadlineExceeded):
						mu.Lock()
						defer mu.Unlock()
						notSent++
					default:
						t.Errorf("SetNX at a frozen server: %v", err)
					}
				})
			}
			wg.Wait()
			if err := server.Thaw(); err != nil {
				t.Fatal(err)
			}
			if notSent < callers-pool {
				t.Errorf("%d of %d calls are known not to have been sent, want all but %d", notSent, callers, pool)
			}
			won := 0
			for range callers - notSent {
				if <-late {
					won++
				}
			}
			if won > 1 {
				t.Errorf("%d late answers won one key", won)
			}
		})
	}
}

// Renewals and releases pass acquires that wait for a connection.
func TestUrgentCallsPassAcquires(t *testing.T) {
	t.Parallel()
	const pool, callers = 2, 200
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: pool})
	drv := newDriver(t, client)
	l := locker.Must(strategy.New(drv, strategy.Config{}))
	lock, err := l.Acquire(t.Context(), locker.Request{Name: "held", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	// From Redis 7.2 on, TIME stands still in a script, and there is os.clock.
	slow := driver.NewScript(`local timed, clock = pcall(function() return os.clock end)
		if not timed then clock = function() local t = redis.call("TIME") return t[1] + t[2] / 1000000 end end
		local till = clock() + 0.02
		repeat until clock() > till
		return 1`)
	var wg sync.WaitGroup
	var mu sync.Mutex
	served, begun := 0, make(chan struct{})
	for range callers {
		wg.Go(func() {
			if _, err := drv.Eval(ctx, slow, []string{"x"}, nil); err == nil {
				mu.Lock()
				defer mu.Unlock()
				if served++; served == 1 {
					close(begun)
				}
			}
		})
	}
	<-begun
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
	mu.Lock()
	if served > callers/2 {
		t.Errorf("a release waited for %d of %d acquires", served, callers)
	}
	mu.Unlock()
	cancel()
	wg.Wait()
}

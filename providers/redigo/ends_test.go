package redigo_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A hanging test of a pooled connection delays no call.
func TestReturnsWhenTestOnBorrowHangs(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		pool := clients.RedigoPool(p.Addr(), redis.DialContextFunc(m.Net.Dial))
		pool.TestOnBorrow = func(c redis.Conn, _ time.Time) error {
			_, err := c.Do("PING")
			return err
		}
		drv := open(t, pool)
		_, err := drv.SetNX(t.Context(), "first", "v", time.Minute)
		check.Must(t, err)
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("PING"), Fault: faultproxy.Stall})
		began := time.Now()
		_, err = drv.SetNX(bound(t, context.Background(), patience), "k", "v", time.Minute)
		wantNotSent(t, err, context.DeadlineExceeded)
		check.Took(t, "the call", began, patience)
		<-trap.Hit()
		trap.Release()
		synctest.Wait()
		if n := pool.IdleCount(); n != 1 || p.Count(faultproxy.Command("SET", "k")) != 0 {
			t.Errorf("%d connections in the pool, want one; %d SETs, want none", n, p.Count(faultproxy.Command("SET", "k")))
		}
	})
}

// Dials that hang hold up no call once another server can be dialed: those that follow a call's end
// occupy no place in the driver.
func TestHangingDialsTakeNoPlace(t *testing.T) {
	t.Parallel()
	check.Each(t, poolKinds, func(t *testing.T, kind func(dial func(context.Context) (redis.Conn, error)) *redis.Pool) {
		clients.Bubble(t, func(t *testing.T) {
			m, p := clients.Proxied(t)
			var addr atomic.Value
			addr.Store(p.Addr())
			drv := open(t, kind(func(context.Context) (redis.Conn, error) {
				c, err := redis.Dial("tcp", addr.Load().(string), redis.DialContextFunc(m.Net.Dial))
				check.Must(t, err)
				_, err = c.Do("PING")
				return c, err
			}))
			p.Freeze()
			defer p.Thaw()
			for range 64 { // more than the places of these pools
				_, err := drv.SetNX(bound(t, context.Background(), 100*time.Millisecond), "k", "v", time.Minute)
				wantNotSent(t, err, context.DeadlineExceeded)
			}
			addr.Store(m.Addr())
			set, err := drv.SetNX(bound(t, context.Background(), patience), "k", "v", time.Minute)
			if !set || err != nil {
				t.Errorf("SetNX at another server: %v, %v", set, err)
			}
		})
	})
}

// However many calls leave a hanging dial, the dials are bounded. If the pool refuses more than MaxActive
// connections, further calls wait in the driver instead, and get the one of a dial that has ended.
func TestHangingDialsAreBounded(t *testing.T) {
	t.Parallel()
	type test struct{ maxActive, dials int }
	check.Each(t, map[string]test{"without MaxActive": {0, 256 + 32}, "MaxActive, no waiting": {2, 2}}, func(t *testing.T, tt test) {
		clients.Bubble(t, func(t *testing.T) {
			m := clients.NewMemory(t)
			var dials atomic.Int32
			thawed := make(chan struct{})
			drv := open(t, &redis.Pool{IdleTimeout: time.Hour, MaxActive: tt.maxActive, Dial: func() (redis.Conn, error) {
				dials.Add(1)
				<-thawed
				return redis.Dial("tcp", m.Addr(), redis.DialContextFunc(m.Net.Dial))
			}})
			for range 400 {
				_, err := drv.SetNX(bound(t, context.Background(), 100*time.Millisecond), "k", "v", time.Minute)
				wantNotSent(t, err, context.DeadlineExceeded)
			}
			check.Within(t, "dials", int(dials.Load()), 1, tt.dials)
			time.AfterFunc(time.Second, func() { close(thawed) })
			set, err := drv.SetNX(bound(t, context.Background(), time.Minute), "k", "v", time.Minute)
			if !set || err != nil {
				t.Errorf("once the dials end: %v, %v", set, err)
			}
		})
	})
}

// Contexts end at about the time of the replies: whichever is first, no connection is lost, and
// each call gets its own reply.
func TestContextEndsWhileTheReplyComes(t *testing.T) {
	t.Parallel()
	const roundTrip = 150 * time.Microsecond
	echo := driver.NewScript(`return ARGV[1]`)
	check.Each(t, poolKinds, func(t *testing.T, kind func(dial func(context.Context) (redis.Conn, error)) *redis.Pool) {
		clients.Bubble(t, func(t *testing.T) {
			m, _ := clients.Proxied(t)
			m.Net.Latency = roundTrip / 2
			pool := kind(func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", m.Addr(), redis.DialContextFunc(m.Net.Dial))
			})
			drv := open(t, pool)
			_, err := drv.Eval(t.Context(), echo, nil, []string{""})
			check.Must(t, err)
			ended := 0
			for i := range 300 {
				after := time.Duration(i) * time.Microsecond
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 0 {
					ctx = bound(t, context.Background(), after)
				} else {
					time.AfterFunc(after, cancel)
				}
				r, err := drv.Eval(ctx, echo, nil, []string{after.String()})
				got, _ := r.Text(0)
				switch {
				case err != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
					ended++
				case err != nil || got != after.String():
					t.Fatalf("reply %q, %v; want %q", got, err, after)
				}
				cancel()
				<-time.After(10 * time.Millisecond)
			}
			<-time.After(3 * time.Second)
			if pool.ActiveCount() != pool.IdleCount() {
				t.Errorf("%d connections are open and %d idle", pool.ActiveCount(), pool.IdleCount())
			}
			if ended < 100 || ended > 200 {
				t.Errorf("%d of 300 calls were ended by their context, want about half", ended)
			}
		})
	})
}

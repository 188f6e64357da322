package redigo_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func wantWake(t *testing.T, what string, s driver.Subscription) {
	t.Helper()
	select {
	case <-s.Wake():
	case <-time.After(patience):
		t.Fatalf("%s: no wake-up after %v", what, patience)
	}
}

// Messages wake; so does every new subscription after a lost connection. The read timeout of the
// pool's connections does not apply, and the connection is none of the pool's.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		m := miniredis.RunT(t)
		proxy := faultproxy.Start(t, m.Addr())
		pool := pools.make(proxy.Addr(), redis.DialReadTimeout(time.Nanosecond))
		pool.MaxActive = 1
		held := pool.Get()
		defer held.Close()
		drv := open(t, pool)
		one, err := drv.Subscribe(t.Context(), "one")
		must(t, err)
		defer one.Close()
		two, err := drv.Subscribe(t.Context(), "two")
		must(t, err)
		wantWake(t, "confirmation", one)
		wantWake(t, "confirmation", two)
		m.Publish("one", "m")
		wantWake(t, "message", one)
		proxy.CutAll()
		wantWake(t, "new subscription", one)
		wantWake(t, "new subscription", two)
		m.Publish("two", "m")
		wantWake(t, "message over the new connection", two)
		must(t, two.Close())
		eventually(t, "unsubscribed", func() bool { return m.PubSubNumSub("two")["two"] == 0 })
		must(t, drv.Close())
		eventually(t, "connection closed", func() bool { return m.PubSubNumSub("one")["one"] == 0 })
	})
}

// A subscriber comes and goes while messages arrive, and the driver is closed amid all that.
func TestSubscribeAndCloseAtOnce(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	for range 20 {
		drv := open(t, clients.RedigoPool(m.Addr()))
		ready := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				s, err := drv.Subscribe(t.Context(), "c")
				if err != nil {
					if !errors.Is(err, driver.ErrClosed) {
						t.Errorf("Subscribe: %v", err)
					}
					return
				}
				m.Publish("c", "m")
				s.Close()
				if i == 3 {
					close(ready)
				}
			}
		}()
		within(t, "subscriptions", ready)
		must(t, drv.Close())
		within(t, "end", done)
	}
}

func TestSubscribeFails(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	refusing := faultproxy.Start(t, m.Addr())
	refusing.Refuse()
	_, err := open(t, clients.RedigoPool(refusing.Addr())).Subscribe(t.Context(), "c")
	wantNotSent(t, err, driver.ErrNotSent)
	if !adapter.DialFailed(err) {
		t.Errorf("error %v, want the dialer's", err)
	}
	_, err = open(t, onlyGet{clients.RedigoPool(m.Addr())}).Subscribe(t.Context(), "c")
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a pool that cannot dial: %v", err)
	}

	s := redistest.Start(t, redistest.Options{
		Args: []string{"--user", "app", "on", ">pass", "resetchannels", "&lock:*", "+@all", "~*"},
	})
	drv := open(t, clients.RedigoPool(s.Addr(), redis.DialUsername("app"), redis.DialPassword("pass")))
	_, err = drv.Subscribe(t.Context(), "other")
	wantServerError(t, err, "NOPERM ")
	allowed, err := drv.Subscribe(t.Context(), "lock:1")
	must(t, err)
	must(t, allowed.Close())
	wrong := open(t, clients.RedigoPool(s.Addr(), redis.DialUsername("app"), redis.DialPassword("wrong")))
	_, err = wrong.Subscribe(t.Context(), "lock:1")
	wantServerError(t, err, "WRONGPASS ")
}

// Dialing ignores its context. Subscribe returns, and so does Close; the connection that comes late
// is closed.
func TestSubscribeReturnsWhenDialingHangs(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	dialing, late := make(chan struct{}), make(chan struct{})
	dialed := make(chan net.Conn, 1)
	drv := open(t, &redis.Pool{Dial: func() (redis.Conn, error) {
		close(dialing)
		<-late
		c, err := net.Dial("tcp", m.Addr())
		dialed <- c
		return redis.NewConn(c, 0, 0), err
	}})
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan answer, 1)
	go func() {
		_, err := drv.Subscribe(ctx, "c")
		answered <- answer{err: err}
	}()
	within(t, "dialing", dialing)
	cancel()
	if a := returned(t, answered); !errors.Is(a.err, context.Canceled) {
		t.Errorf("error %v", a.err)
	}
	must(t, drv.Close())
	close(late)
	conn := <-dialed
	eventually(t, "late connection closed", func() bool {
		return errors.Is(conn.SetDeadline(time.Time{}), net.ErrClosed)
	})
}

package redigo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

func TestNewRefusesWhatCannotDial(t *testing.T) {
	t.Parallel()
	for name, pool := range map[string]redigo.Pool{
		"nil":              nil,
		"nil *redis.Pool":  (*redis.Pool)(nil),
		"nil cluster":      (*redisc.Cluster)(nil),
		"neither function": &redis.Pool{},
	} {
		drv, err := redigo.New(pool)
		var invalid *driver.InvalidError
		if drv != nil || !errors.As(err, &invalid) || invalid.What != "redigo.New pool" || invalid.Allowed == "" {
			t.Errorf("%s: %v, %v", name, drv, err)
		}
	}
}

// If there is no connection, the error says that nothing was sent, and why.
func TestNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pool func(addr string, dial redis.DialOption) redigo.Pool
		want error
	}{
		"refused": {func(_ string, dial redis.DialOption) redigo.Pool { return clients.RedigoPool("127.0.0.1:1", dial) }, driver.ErrNotSent},
		"exhausted": {func(addr string, dial redis.DialOption) redigo.Pool {
			return usedUp{clients.RedigoPool(addr, dial), false}.pool()
		}, redis.ErrPoolExhausted},
		"waits for its ctx": {func(addr string, dial redis.DialOption) redigo.Pool {
			return usedUp{clients.RedigoPool(addr, dial), true}.pool()
		}, context.DeadlineExceeded},
		"closed": {func(addr string, dial redis.DialOption) redigo.Pool {
			p := clients.RedigoPool(addr, dial)
			_ = p.Close()
			return p
		}, driver.ErrPermanent},
		"closed cluster": {func(addr string, dial redis.DialOption) redigo.Pool {
			c := &redisc.Cluster{StartupNodes: []string{addr}, DialOptions: []redis.DialOption{dial}}
			_ = c.Close()
			return onlyGet{c}
		}, driver.ErrPermanent},
		"refused cluster": {func(_ string, dial redis.DialOption) redigo.Pool {
			return &redisc.Cluster{StartupNodes: []string{"127.0.0.1:1"}, DialOptions: []redis.DialOption{dial}}
		}, driver.ErrNotSent},
		"wrong password": {func(addr string, dial redis.DialOption) redigo.Pool {
			return clients.RedigoPool(addr, dial, redis.DialPassword("wrong"))
		}, redis.Error("WRONGPASS invalid username-password pair")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients.Bubble(t, func(t *testing.T) {
				m := memredis.Start(t, memnet.New())
				m.RequireAuth("secret")
				drv, err := redigo.New(c.pool(m.Addr(), redis.DialContextFunc(m.Net.Dial)))
				check.Must(t, err)
				defer drv.Close()
				began := time.Now()
				_, err = drv.SetNX(bound(t, context.Background(), patience), "k", "v", time.Minute)
				wantNotSent(t, err, c.want)
				_, err = drv.Eval(bound(t, context.Background(), patience), incr, []string{"k"}, nil)
				wantNotSent(t, err, c.want)
				if _, err := drv.Subscribe(t.Context(), "c"); name == "wrong password" {
					wantServerError(t, err, "WRONGPASS ")
				}
				want := time.Duration(0)
				if errors.Is(c.want, context.DeadlineExceeded) {
					want = 2 * patience
				}
				check.Took(t, "the call", began, want)
			})
		})
	}
}

// usedUp has a pool with its only connection in use.
type usedUp struct {
	*redis.Pool
	wait bool
}

func (u usedUp) pool() redigo.Pool {
	u.MaxActive, u.Wait = 1, u.wait
	_ = u.Get()
	return u.Pool
}

// onlyGet hides a pool's other methods.
type onlyGet struct{ pool redigo.Pool }

func (p onlyGet) Get() redis.Conn { return p.pool.Get() }

// Close ends the driver's work, and leaves the pool to its owner.
func TestClose(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m := memredis.Start(t, memnet.New())
		pool := clients.RedigoPool(m.Addr(), redis.DialContextFunc(m.Net.Dial))
		drv := open(t, pool)
		check.Equal(t, "Info", drv.Info(), driver.Info{Client: "redigo"})
		check.Must(t, drv.Close())
		conn := pool.Get()
		defer conn.Close()
		if _, err := conn.Do("PING"); err != nil {
			t.Errorf("the pool after Close: %v", err)
		}
	})
}

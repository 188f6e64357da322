package redigo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// The subscriber connection is not from the pool, and the pool's read timeout does not end it.
func TestSubscriptionOutlastsReadTimeout(t *testing.T) {
	t.Parallel()
	check.Each(t, poolKinds, func(t *testing.T, kind func(dial func(context.Context) (redis.Conn, error)) *redis.Pool) {
		clients.Bubble(t, func(t *testing.T) {
			m, p := clients.Proxied(t)
			pool := kind(func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", p.Addr(), redis.DialContextFunc(m.Net.Dial), redis.DialReadTimeout(time.Second))
			})
			pool.MaxActive = 1
			held := pool.Get()
			defer held.Close()
			sub, err := open(t, pool).Subscribe(t.Context(), "c")
			check.Must(t, err)
			<-sub.Wake() // the confirmation
			<-time.After(time.Hour)
			synctest.Wait()
			if len(sub.Wake()) > 0 || m.TotalConnectionCount() != 3 { // the first made by memredis
				t.Errorf("woken without a message; %d connections", m.TotalConnectionCount())
			}
			m.Publish("c", "m")
			<-sub.Wake()
			check.Must(t, sub.Close())
		})
	})
}

func TestSubscribeUnsupported(t *testing.T) {
	t.Parallel()
	drv := open(t, onlyGet{clients.RedigoPool("127.0.0.1:1")})
	if _, err := drv.Subscribe(t.Context(), "c"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a pool that cannot dial: %v", err)
	}
}

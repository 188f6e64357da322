package redigo

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/check"
)

type plainConn struct{ redis.ConnWithTimeout }

// A call runs in its caller's goroutine only if everything obeys ctx.
func TestInline(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", m.Addr()) }
	dialPlain := func(ctx context.Context) (redis.Conn, error) {
		c, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return plainConn{c.(redis.ConnWithTimeout)}, nil
	}
	for name, c := range map[string]struct {
		pool *redis.Pool
		want bool
	}{
		"DialContext":         {&redis.Pool{DialContext: dial}, true},
		"TestOnBorrowContext": {&redis.Pool{DialContext: dial, TestOnBorrowContext: func(context.Context, redis.Conn, time.Time) error { return nil }}, false},
		"IdleTimeout":         {&redis.Pool{DialContext: dial, IdleTimeout: time.Minute}, false},
		"MaxConnLifetime":     {&redis.Pool{DialContext: dial, MaxConnLifetime: time.Minute}, false},
		"TestOnBorrow":        {&redis.Pool{DialContext: dial, TestOnBorrow: func(redis.Conn, time.Time) error { return nil }}, false},
		"Dial":                {&redis.Pool{Dial: func() (redis.Conn, error) { return dial(t.Context()) }}, false},
		"no contexts":         {&redis.Pool{DialContext: dialPlain}, false},
	} {
		drv, err := New(c.pool)
		check.Must(t, err)
		if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		idle := drv.(*redigoDriver).idle
		check.Equal(t, name+": inline", idle != nil && idle.closable.Load(), c.want)
		check.OK(t, drv.Close())
		check.OK(t, c.pool.Close())
	}
}

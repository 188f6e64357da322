package redigo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(redistest.CloseAfter(m, nodes)) }

// patience is the time limit of a call's context, in the fake time of a bubble.
const patience = time.Second

// poolKinds are the kinds of pool with different treatment in the adapter.
var poolKinds = map[string]func(dial func(context.Context) (redis.Conn, error)) *redis.Pool{
	"DialContext": func(dial func(context.Context) (redis.Conn, error)) *redis.Pool {
		return &redis.Pool{MaxIdle: 4, DialContext: dial}
	},
	"Dial": func(dial func(context.Context) (redis.Conn, error)) *redis.Pool {
		return &redis.Pool{MaxIdle: 4, Dial: func() (redis.Conn, error) { return dial(context.Background()) }}
	},
	"TestOnBorrow": func(dial func(context.Context) (redis.Conn, error)) *redis.Pool {
		return &redis.Pool{MaxIdle: 4, DialContext: dial, TestOnBorrow: func(redis.Conn, time.Time) error { return nil }}
	},
	// A connection in use cannot be closed: a cancelled call lasts until its reply or deadline.
	"connections without contexts": func(dial func(context.Context) (redis.Conn, error)) *redis.Pool {
		return &redis.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redis.Conn, error) {
			c, err := dial(ctx)
			return timeoutConn{c}, err
		}}
	},
}

// timeoutConn is redis.ConnWithTimeout and not redis.ConnWithContext, as connections wrapped by old
// packages are.
type timeoutConn struct{ redis.Conn }

func (c timeoutConn) DoWithTimeout(d time.Duration, command string, args ...any) (any, error) {
	return redis.DoWithTimeout(c.Conn, d, command, args...)
}

func (c timeoutConn) ReceiveWithTimeout(d time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, d)
}

// open makes a driver over pool; both are closed at the end.
func open(t testing.TB, pool redigo.Pool) driver.Driver {
	t.Helper()
	drv, err := redigo.New(pool)
	check.Must(t, err)
	t.Cleanup(func() {
		if err := drv.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("driver's Close: %v", err)
		}
		if p, ok := pool.(interface{ Close() error }); ok {
			check.Must(t, p.Close())
		}
	})
	return drv
}

// bound is a context with a deadline alone, stopped at the end of the test.
func bound(t *testing.T, parent context.Context, d time.Duration) *bounded.Context {
	ctx := bounded.New(parent, d)
	t.Cleanup(ctx.Stop)
	return ctx
}

func wantInt(t *testing.T, r driver.Reply, err error, want int64) {
	t.Helper()
	if n, errInt := r.Int(0); err != nil || errInt != nil || n != want {
		t.Errorf("result %d, %v, %v; want %d", n, err, errInt, want)
	}
}

// wantNotSent checks for an error of a command that never left.
func wantNotSent(t *testing.T, err, is error) {
	t.Helper()
	if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, is) {
		t.Errorf("error %v, want not sent and %v", err, is)
	}
}

func wantServerError(t *testing.T, err error, prefix string) {
	t.Helper()
	var se *driver.ServerError
	var own redis.Error
	if !errors.As(err, &se) || !strings.HasPrefix(se.Text, prefix) || !errors.As(err, &own) {
		t.Errorf("error %v, want a server's %q with redigo's own below", err, prefix)
	}
}

var incr = driver.NewScript(`return redis.call("INCR", KEYS[1])`)

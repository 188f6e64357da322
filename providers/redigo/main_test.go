package redigo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/redigo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.CloseAfter(m, nodes)) }

// patience tells an answer from none. It is shorter than the timeouts that redigo has by default.
const patience = 8 * time.Second

// poolKind is a kind of pool that the adapter treats in a way of its own.
type poolKind struct {
	name string
	make func(addr string, options ...redis.DialOption) *redis.Pool
	// deaf: a connection in use cannot be closed, so that what was cancelled lasts until its reply
	// or deadline.
	deaf bool
}

var poolKinds = []poolKind{
	{name: "DialContext", make: clients.RedigoPool},
	{name: "Dial", make: func(addr string, options ...redis.DialOption) *redis.Pool {
		return &redis.Pool{MaxIdle: 4, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr, options...) }}
	}},
	{name: "TestOnBorrow", make: func(addr string, options ...redis.DialOption) *redis.Pool {
		p := clients.RedigoPool(addr, options...)
		p.TestOnBorrow = func(redis.Conn, time.Time) error { return nil }
		return p
	}},
	{name: "connections without contexts", deaf: true, make: func(addr string, options ...redis.DialOption) *redis.Pool {
		return &redis.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redis.Conn, error) {
			c, err := redis.DialContext(ctx, "tcp", addr, options...)
			return timeoutConn{c}, err
		}}
	}},
}

// timeoutConn is redis.ConnWithTimeout and not redis.ConnWithContext, as connections that old
// packages wrap.
type timeoutConn struct{ redis.Conn }

func (c timeoutConn) DoWithTimeout(d time.Duration, command string, args ...any) (any, error) {
	return redis.DoWithTimeout(c.Conn, d, command, args...)
}

func (c timeoutConn) ReceiveWithTimeout(d time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, d)
}

func eachPool(t *testing.T, test func(t *testing.T, pools poolKind)) {
	t.Helper()
	for _, kind := range poolKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// open makes a driver over pool; both are closed at the end.
func open(t testing.TB, pool redigo.Pool) driver.Driver {
	t.Helper()
	drv, err := redigo.New(pool)
	must(t, err)
	t.Cleanup(func() {
		if err := drv.Close(); err != nil && !errors.Is(err, driver.ErrClosed) {
			t.Errorf("driver's Close: %v", err)
		}
		if p, ok := pool.(interface{ Close() error }); ok {
			must(t, p.Close())
		}
	})
	return drv
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within waits for an event.
func within(t *testing.T, what string, event <-chan struct{}) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatalf("%s: not after %v", what, patience)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for limit := time.After(patience); !met(); {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not after %v", what, patience)
		}
	}
}

// answer is how a call returned.
type answer struct {
	set bool
	err error
}

// setNX calls SetNX in a goroutine.
func setNX(ctx context.Context, drv driver.Driver, key string) <-chan answer {
	answered := make(chan answer, 1)
	go func() {
		set, err := drv.SetNX(ctx, key, "v", time.Minute)
		answered <- answer{set, err}
	}()
	return answered
}

// returned waits for a call to return.
func returned(t *testing.T, answered <-chan answer) answer {
	t.Helper()
	select {
	case a := <-answered:
		return a
	case <-time.After(patience):
		t.Fatalf("the call did not return within %v", patience)
		return answer{}
	}
}

// wantOpen checks for an error that leaves the command open.
func wantOpen(t *testing.T, err, is error) {
	t.Helper()
	if !errors.Is(err, is) || driver.NotExecuted(err) || driver.CodeOf(err) != "" {
		t.Errorf("error %v, want one of unknown outcome that matches %v", err, is)
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

var (
	incr   = driver.NewScript(`return redis.call("INCR", KEYS[1])`)
	delOwn = driver.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
)

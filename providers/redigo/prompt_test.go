package redigo_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// ending is a context that ends before the answer comes. cancel does nothing where the deadline
// ends it; that is counted from when the ending was made.
type ending struct {
	ctx    context.Context
	cancel func()
	want   error
}

var endings = map[string]func(t *testing.T) ending{
	"cancelled": func(t *testing.T) ending {
		ctx, cancel := context.WithCancel(t.Context())
		return ending{ctx, cancel, context.Canceled}
	},
	"cancelled, bounded": func(t *testing.T) ending {
		parent, cancel := context.WithCancel(t.Context())
		return ending{bound(t, parent, time.Hour), cancel, context.Canceled}
	},
	"deadline": func(t *testing.T) ending {
		return ending{bound(t, context.Background(), soon), func() {}, context.DeadlineExceeded}
	},
	"deadline, cancellable": func(t *testing.T) ending {
		return ending{bound(t, t.Context(), soon), func() {}, context.DeadlineExceeded}
	},
}

// soon is long enough for a command to be sent, on a busy machine too.
const soon = 1500 * time.Millisecond

func bound(t *testing.T, parent context.Context, d time.Duration) *driver.Bounded {
	ctx := driver.Bound(parent, d)
	t.Cleanup(ctx.Stop)
	return ctx
}

// eachEnding has test call begin when all is ready for the call that is to end.
func eachEnding(
	t *testing.T, test func(t *testing.T, pools poolKind, begin func(*testing.T) ending),
) {
	t.Helper()
	eachPool(t, func(t *testing.T, pools poolKind) {
		for name, begin := range endings {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, pools, begin)
			})
		}
	})
}

// The reply does not come. The call returns, its connection is closed instead of pooled, and the
// next call has a reply of its own.
func TestReturnsWhenTheReplyIsStalled(t *testing.T) {
	t.Parallel()
	eachEnding(t, func(t *testing.T, pools poolKind, begin func(*testing.T) ending) {
		proxy := faultproxy.Start(t, miniredis.RunT(t).Addr())
		pool := pools.make(proxy.Addr())
		drv := open(t, pool)
		_, err := drv.SetNX(t.Context(), "warm", "v", time.Minute)
		must(t, err)

		trap := proxy.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "slow"), Fault: faultproxy.Stall})
		end := begin(t)
		defer end.cancel()
		answered := setNX(end.ctx, drv, "slow")
		within(t, "stall", trap.Hit())
		end.cancel()
		wantOpen(t, returned(t, answered).err, end.want)
		if pools.deaf && errors.Is(end.want, context.Canceled) {
			trap.Release()
		} else {
			within(t, "close of the connection", trap.Gone())
		}
		eventually(t, "connection given back", func() bool { return pool.ActiveCount() == pool.IdleCount() })
		if set, err := drv.SetNX(t.Context(), "slow", "v", time.Minute); set || err != nil {
			t.Errorf("next call: %v, %v", set, err)
		}
		if n := proxy.Count(faultproxy.Command("SET", "slow")); n != 2 {
			t.Errorf("%d SETs, want one for each call", n)
		}
	})
}

// early is a context whose deadline has passed and whose timer has yet to fire.
type early struct{ context.Context }

func (early) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

// The timer of the connection's deadline fires, and that of ctx has yet to: on a busy machine it
// may be late. Who calls is told what it was all the same.
func TestDeadlineOfTheConnectionComesFirst(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		proxy := faultproxy.Start(t, miniredis.RunT(t).Addr())
		drv := open(t, pools.make(proxy.Addr()))
		proxy.Add(faultproxy.Rule{Match: faultproxy.Contains("lost"), Every: true, Fault: faultproxy.DropReply})
		for name, send := range map[string]func(context.Context, string) error{
			"SetNX": func(ctx context.Context, key string) error {
				_, err := drv.SetNX(ctx, key, "v", time.Minute)
				return err
			},
			"EvalMany": func(ctx context.Context, key string) error {
				return evalMany(ctx, drv, driver.Call{Script: incr, Keys: []string{key}})[0].Err
			},
		} {
			_, err := drv.SetNX(t.Context(), "warm", "v", time.Minute) // there is a connection
			must(t, err)
			wantOpen(t, send(early{t.Context()}, "lost by "+name), context.DeadlineExceeded)
		}
	})
}

// The server reads no more, so that a large command cannot be written.
func TestReturnsWhenTheServerDoesNotRead(t *testing.T) {
	t.Parallel()
	eachEnding(t, func(t *testing.T, pools poolKind, begin func(*testing.T) ending) {
		drv := open(t, pools.make(readsOnce(t)))
		_, err := drv.SetNX(t.Context(), "warm", "v", time.Minute)
		must(t, err)
		large := strings.Repeat("x", 16<<20)
		answered := make(chan answer, 1)
		end := begin(t)
		defer end.cancel()
		go func() {
			set, err := drv.SetNX(end.ctx, "k", large, time.Minute)
			answered <- answer{set, err}
		}()
		end.cancel()
		if a := returned(t, answered); !errors.Is(a.err, end.want) {
			t.Errorf("error %v, want %v", a.err, end.want)
		}
	})
}

// readsOnce is a server that answers OK to what it reads first on a connection, and then reads no
// more.
func readsOnce(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { conn.Close() })
			if _, err := conn.Read(make([]byte, 4096)); err != nil {
				continue
			}
			if _, err := conn.Write([]byte("+OK\r\n")); err != nil {
				t.Errorf("readsOnce: %v", err)
			}
		}
	}()
	return l.Addr().String()
}

// No connection comes about: nothing was sent, and a connection that comes late is not lost.
func TestReturnsWhenDialingHangs(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	for name, begin := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialing, late := make(chan struct{}), make(chan struct{})
			pool := &redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) {
				close(dialing)
				<-late
				return redis.Dial("tcp", m.Addr())
			}}
			drv := open(t, pool)
			end := begin(t)
			defer end.cancel()
			answered := setNX(end.ctx, drv, name)
			within(t, "dialing", dialing)
			end.cancel()
			wantNotSent(t, returned(t, answered).err, end.want)
			close(late)
			eventually(t, "late connection pooled", func() bool { return pool.IdleCount() == 1 })
			if m.Exists(name) {
				t.Error("the command was sent")
			}
		})
	}
}

// A test of a pooled connection that hangs is no different.
func TestReturnsWhenTestOnBorrowHangs(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.Start(t, miniredis.RunT(t).Addr())
	pool := clients.RedigoPool(proxy.Addr())
	pool.TestOnBorrow = func(c redis.Conn, _ time.Time) error {
		_, err := c.Do("PING")
		return err
	}
	drv := open(t, pool)
	_, err := drv.SetNX(t.Context(), "warm", "v", time.Minute)
	must(t, err)
	trap := proxy.Add(faultproxy.Rule{Match: faultproxy.Command("PING"), Fault: faultproxy.Stall})
	_, err = drv.SetNX(bound(t, context.Background(), soon), "k", "v", time.Minute)
	wantNotSent(t, err, context.DeadlineExceeded)
	within(t, "stall", trap.Hit())
	trap.Release()
	eventually(t, "connection pooled", func() bool { return pool.IdleCount() == 1 })
	if n := proxy.Count(faultproxy.Command("SET", "k")); n != 0 {
		t.Errorf("%d SETs", n)
	}
}

// Contexts end at about the time the replies come: whatever wins, no connection is lost or gets
// another's reply.
func TestContextEndsWhileTheReplyComes(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		m := miniredis.RunT(t)
		pool := pools.make(m.Addr())
		drv := open(t, pool)
		echo := driver.NewScript(`return ARGV[1]`)
		var ended atomic.Int64
		for i := range 300 {
			parent, cancel := context.WithCancel(t.Context())
			ctx := driver.Bound(parent, time.Minute)
			if i%2 == 0 {
				ctx = driver.Bound(context.Background(), time.Duration(i)*time.Microsecond)
			}
			go cancel()
			want := time.Duration(i).String()
			r, err := drv.Eval(ctx, echo, nil, []string{want})
			if err != nil {
				ended.Add(1)
				if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
			} else if got, _ := r.Text(0); got != want {
				t.Fatalf("reply %q, want %q", got, want)
			}
			ctx.Stop()
			cancel()
		}
		eventually(t, "connections given back", func() bool { return pool.ActiveCount() == pool.IdleCount() })
		t.Logf("%d of 300 calls were ended by their context", ended.Load())
	})
}

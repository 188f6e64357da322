package redigo_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// contexts are those that a call may come with; each ends after patience.
var contexts = map[string]func(t *testing.T) context.Context{
	"cancelled": func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(patience, cancel)
		return ctx
	},
	"bounded":              func(t *testing.T) context.Context { return bound(t, context.Background(), patience) },
	"bounded, cancellable": func(t *testing.T) context.Context { return bound(t, t.Context(), patience) },
}

// operations are the calls that send something. They overwrite their slices, which are the caller's
// again.
var operations = map[string]func(ctx context.Context, drv driver.Driver) error{
	"SetNX": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.SetNX(ctx, "k", "v", time.Minute)
		return err
	},
	"Eval": func(ctx context.Context, drv driver.Driver) error {
		keys := []string{"k"}
		_, err := drv.Eval(ctx, incr, keys, nil)
		keys[0] = ""
		return err
	},
	"EvalMany": func(ctx context.Context, drv driver.Driver) error {
		calls := []driver.Call{{Script: incr, Keys: []string{"k"}}, {Script: driver.NewScript("return 1"), Keys: []string{"k"}}}
		err := evalMany(ctx, drv, calls...)[1].Err
		calls[0].Keys[0], calls[1] = "", driver.Call{}
		return err
	},
	"EvalAcked": func(ctx context.Context, drv driver.Driver) error {
		keys := []string{"k"}
		_, _, err := drv.(driver.Acknowledger).EvalAcked(ctx, incr, keys, nil, 1, patience/2)
		keys[0] = ""
		return err
	},
	"Subscribe": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.Subscribe(ctx, "c")
		return err
	},
}

// stuck has a call, which is not the first, get stuck somewhere.
var stuck = map[string]struct {
	// dial makes the function of the pool. What it returns gets stuck once stop is closed, until
	// resume is.
	dial func(m *memredis.Server, p *faultproxy.Proxy, stop, resume chan struct{}) func(context.Context) (redis.Conn, error)
	sent bool // as far as the client knows
	// dials: there is no idle connection
	dials bool
}{
	"dialing": {dials: true, dial: func(m *memredis.Server, _ *faultproxy.Proxy, stop, resume chan struct{}) func(context.Context) (redis.Conn, error) {
		return func(context.Context) (redis.Conn, error) { // as in a TLS handshake, it ignores its context
			select {
			case <-stop:
				<-resume
			default:
			}
			return over(m.Net.Dial(context.Background(), "tcp", m.Addr()))
		}
	}},
	"write": {sent: true, dial: func(_ *memredis.Server, _ *faultproxy.Proxy, _, resume chan struct{}) func(context.Context) (redis.Conn, error) {
		return func(context.Context) (redis.Conn, error) { // a pipe: each write lasts until it is read
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				if _, err := far.Read(make([]byte, 4096)); err == nil {
					_, _ = far.Write([]byte("+OK\r\n"))
					<-resume
				}
			}()
			return over(near, nil)
		}
	}},
	"reply": {sent: true, dial: func(m *memredis.Server, p *faultproxy.Proxy, stop, resume chan struct{}) func(context.Context) (redis.Conn, error) {
		go func() {
			<-stop
			p.Freeze()
			<-resume
			p.Thaw()
		}()
		return func(ctx context.Context) (redis.Conn, error) { return over(m.Net.Dial(ctx, "tcp", p.Addr())) }
	}},
}

func over(c net.Conn, err error) (redis.Conn, error) {
	if err != nil {
		return nil, err
	}
	return redis.NewConn(c, 0, 0), nil
}

// A call returns when its context ends, wherever it is. The pool gets its connection back, or loses
// one that is of no use.
func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	for kindName, kind := range poolKinds {
		for place, s := range stuck {
			for ctxName, newContext := range contexts {
				for opName, operation := range operations {
					if opName == "Subscribe" && place != "dialing" {
						continue // it is over when SUBSCRIBE is confirmed: see drivertest
					}
					t.Run(kindName+"/"+place+"/"+ctxName+"/"+opName, func(t *testing.T) {
						t.Parallel()
						clients.Bubble(t, func(t *testing.T) {
							m, p := clients.Proxied(t)
							stop, resume := make(chan struct{}), make(chan struct{})
							resumed := sync.OnceFunc(func() { close(resume) })
							t.Cleanup(resumed)
							pool := kind(s.dial(m, p, stop, resume))
							drv := open(t, pool)
							_, err := drv.SetNX(t.Context(), "first", "v", time.Minute)
							must(t, err)
							if s.dials {
								idle := pool.Get()
								defer idle.Close()
							}
							close(stop)
							synctest.Wait()

							ctx := newContext(t)
							began := time.Now()
							err = operation(ctx, drv)
							if took := time.Since(began); took != patience {
								t.Errorf("took %v, want exactly %v", took, patience)
							}
							synctest.Wait() // the timers of ctx and of the connection fire at the same instant
							if want := s.sent; !errors.Is(err, ctx.Err()) || errors.Is(err, driver.ErrNotSent) == want && opName != "Subscribe" {
								t.Errorf("error %v, want %v; sent: %v", err, ctx.Err(), want)
							}
							if place == "reply" {
								resumed() // else a connection without contexts lasts forever
							}
							<-time.After(3 * time.Second)
							if opName == "Subscribe" {
								must(t, drv.Close()) // whose connection comes late
							}
							resumed()
							synctest.Wait()
							used := 0
							if s.dials {
								used = 1
							}
							if pool.ActiveCount()-used != pool.IdleCount() {
								t.Errorf("%d connections are open and %d idle", pool.ActiveCount(), pool.IdleCount())
							}
							_ = drv.Close()
							must(t, pool.Close())
							synctest.Wait()
							if n := m.CurrentConnectionCount(); n != used {
								t.Errorf("%d connections are left, want %d", n, used)
							}
							if opName == "SetNX" && !s.sent && m.Exists("k") {
								t.Error("the command was sent")
							}
						})
					})
				}
			}
		}
	}
}

// A test of a pooled connection that hangs holds up no call.
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
		must(t, err)
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("PING"), Fault: faultproxy.Stall})
		began := time.Now()
		_, err = drv.SetNX(bound(t, context.Background(), patience), "k", "v", time.Minute)
		wantNotSent(t, err, context.DeadlineExceeded)
		if took := time.Since(began); took != patience {
			t.Errorf("took %v, want exactly %v", took, patience)
		}
		<-trap.Hit()
		trap.Release()
		synctest.Wait()
		if n := pool.IdleCount(); n != 1 || p.Count(faultproxy.Command("SET", "k")) != 0 {
			t.Errorf("%d connections in the pool, want one; %d SETs, want none", n, p.Count(faultproxy.Command("SET", "k")))
		}
	})
}

// early is a context whose deadline has passed and whose timer has yet to fire.
type early struct{ context.Context }

func (early) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

// If the timer of the connection's deadline fires before that of ctx, the error is ctx's all the
// same.
func TestDeadlineOfTheConnectionComesFirst(t *testing.T) {
	t.Parallel()
	for kindName, kind := range poolKinds {
		for _, opName := range []string{"SetNX", "EvalMany"} {
			t.Run(kindName+"/"+opName, func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					m, p := clients.Proxied(t)
					drv := open(t, kind(func(ctx context.Context) (redis.Conn, error) { return over(m.Net.Dial(ctx, "tcp", p.Addr())) }))
					_, err := drv.SetNX(t.Context(), "first", "v", time.Minute) // there is a connection
					must(t, err)
					p.Add(faultproxy.Rule{Match: faultproxy.Any, Every: true, Fault: faultproxy.DropReply})
					wantOpen(t, operations[opName](early{t.Context()}, drv), context.DeadlineExceeded)
				})
			})
		}
	}
}

// Contexts end at about the time when the replies come: whichever is first, no connection is lost,
// and each call gets its own reply.
func TestContextEndsWhileTheReplyComes(t *testing.T) {
	t.Parallel()
	const roundTrip = 150 * time.Microsecond
	echo := driver.NewScript(`return ARGV[1]`)
	for name, kind := range poolKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clients.Bubble(t, func(t *testing.T) {
				m, _ := clients.Proxied(t)
				m.Net.Latency = roundTrip / 2
				pool := kind(func(ctx context.Context) (redis.Conn, error) { return over(m.Net.Dial(ctx, "tcp", m.Addr())) })
				drv := open(t, pool)
				_, err := drv.Eval(t.Context(), echo, nil, []string{""})
				must(t, err)
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
}

package redigo_test

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
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

func TestReplies(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		m := miniredis.RunT(t)
		drv := open(t, pools.make(m.Addr()))
		for i, want := range []bool{true, false} {
			if set, err := drv.SetNX(t.Context(), "k", "v", 1500*time.Millisecond); err != nil || set != want {
				t.Errorf("SetNX %d: %v, %v", i, set, err)
			}
		}
		if ttl := m.TTL("k"); ttl != 1500*time.Millisecond {
			t.Errorf("TTL %v", ttl)
		}
		list := driver.NewScript(`return {KEYS[1], #ARGV, ARGV[2], false}`)
		r, err := drv.Eval(t.Context(), list, []string{"key"}, []string{"a", "b"})
		must(t, err)
		key, _ := r.Text(0)
		n, _ := r.Int(1)
		b, _ := r.Text(2)
		if r.Len() != 4 || key != "key" || n != 2 || b != "b" || !r.IsNil(3) {
			t.Errorf("Eval: %+v", r)
		}
		if _, err := drv.Eval(t.Context(), driver.NewScript(`return {{1}}`), nil, nil); err == nil || driver.NotExecuted(err) {
			t.Errorf("a nested list: %v", err)
		}
		if info := drv.Info(); info != (driver.Info{Client: "redigo"}) {
			t.Errorf("Info: %+v", info)
		}
	})
}

// The server does not know the script once, so its source is sent once.
func TestNoScriptRunsOnce(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	proxy := faultproxy.Start(t, m.Addr())
	drv := open(t, clients.RedigoPool(proxy.Addr()))
	for want := range int64(3) {
		r, err := drv.Eval(t.Context(), incr, []string{"n"}, nil)
		must(t, err)
		if n, _ := r.Int(0); n != want+1 {
			t.Errorf("run %d counted %d", want, n)
		}
	}
	if digest, source := proxy.Count(faultproxy.Command("EVALSHA")), proxy.Count(faultproxy.Command("EVAL")); digest != 3 || source != 1 {
		t.Errorf("%d EVALSHA and %d EVAL, want 3 and 1", digest, source)
	}
}

// A lost reply is an unknown outcome, and the command is not sent again.
func TestLostReplyIsNotResent(t *testing.T) {
	t.Parallel()
	eachPool(t, func(t *testing.T, pools poolKind) {
		m := miniredis.RunT(t)
		proxy := faultproxy.Start(t, m.Addr())
		drv := open(t, pools.make(proxy.Addr()))
		_, err := drv.Eval(t.Context(), incr, []string{"n"}, nil) // also fills the pool
		must(t, err)

		proxy.Add(faultproxy.Rule{Match: faultproxy.Command("SET"), Fault: faultproxy.Cut})
		if set, err := drv.SetNX(t.Context(), "k", "v", time.Minute); set || err == nil || driver.NotExecuted(err) || driver.CodeOf(err) != "" {
			t.Errorf("SetNX: %v, %v", set, err)
		}
		proxy.Add(faultproxy.Rule{Match: faultproxy.Command("EVALSHA"), Fault: faultproxy.Cut})
		if _, err := drv.Eval(t.Context(), incr, []string{"n"}, nil); err == nil || driver.NotExecuted(err) {
			t.Errorf("Eval: %v", err)
		}
		if n := proxy.Count(faultproxy.Command("SET")); n != 1 || !m.Exists("k") {
			t.Errorf("%d SETs left", n)
		}
		if n, _ := m.Get("n"); n != "2" {
			t.Errorf("the script ran %s times", n)
		}
	})
}

// A connection that died in the pool gives an unknown outcome too: EOF does not tell when it came.
func TestDeadPooledConnection(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	proxy := faultproxy.Start(t, m.Addr())
	drv := open(t, clients.RedigoPool(proxy.Addr()))
	_, err := drv.SetNX(t.Context(), "k", "v", time.Minute)
	must(t, err)
	proxy.CutAll()
	if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); err == nil || driver.NotExecuted(err) {
		t.Errorf("error %v", err)
	}
	if set, err := drv.SetNX(t.Context(), "k2", "v", time.Minute); !set || err != nil {
		t.Errorf("over a new connection: %v, %v", set, err)
	}
}

func TestServerErrors(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	drv := open(t, clients.RedigoPool(m.Addr()))
	for _, text := range []string{"LOADING Redis is loading the dataset in memory", "OOM command not allowed", "BUSY script", "ERR odd"} {
		m.SetError(text)
		_, err := drv.SetNX(t.Context(), "k", "v", time.Minute)
		wantServerError(t, err, text)
		_, err = drv.Eval(t.Context(), incr, []string{"n"}, nil)
		wantServerError(t, err, text)
	}
	m.SetError("")
	must(t, m.Set("text", "v"))
	_, err := drv.Eval(t.Context(), incr, []string{"text"}, nil)
	wantServerError(t, err, "ERR ")
}

func TestNotSent(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	refusing := faultproxy.Start(t, m.Addr())
	refusing.Refuse()
	full := func(wait bool) *redis.Pool {
		p := clients.RedigoPool(m.Addr())
		p.MaxActive, p.Wait = 1, wait
		held := p.Get()
		t.Cleanup(func() { held.Close() })
		return p
	}
	closed := clients.RedigoPool(m.Addr())
	must(t, closed.Close())
	closedCluster := &redisc.Cluster{StartupNodes: []string{m.Addr()}}
	must(t, closedCluster.Close())
	for name, c := range map[string]struct {
		pool  redigo.Pool
		limit time.Duration
		want  error
	}{
		"refused":           {clients.RedigoPool(refusing.Addr()), patience, driver.ErrNotSent},
		"exhausted":         {full(false), patience, redis.ErrPoolExhausted},
		"waits for its ctx": {full(true), soon, context.DeadlineExceeded},
		"closed":            {closed, patience, driver.ErrPermanent},
		"closed cluster":    {onlyGet{closedCluster}, patience, driver.ErrPermanent},
		"refused cluster":   {&redisc.Cluster{StartupNodes: []string{refusing.Addr()}}, patience, driver.ErrNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drv, err := redigo.New(c.pool)
			must(t, err)
			defer drv.Close()
			_, err = drv.SetNX(bound(t, context.Background(), c.limit), "k", "v", time.Minute)
			wantNotSent(t, err, c.want)
			for _, r := range evalMany(bound(t, context.Background(), c.limit), drv, driver.Call{Script: incr}, driver.Call{Script: incr}) {
				wantNotSent(t, r.Err, c.want)
			}
			if m.CommandCount() != 0 {
				t.Error("a command was sent")
			}
		})
	}
}

// onlyGet hides what else a pool has.
type onlyGet struct{ pool redigo.Pool }

func (p onlyGet) Get() redis.Conn { return p.pool.Get() }

func TestEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	drv := open(t, clients.RedigoPool(m.Addr()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := drv.SetNX(ctx, "k", "v", time.Minute)
	wantNotSent(t, err, context.Canceled)
	_, err = drv.Eval(ctx, incr, []string{"k"}, nil)
	wantNotSent(t, err, context.Canceled)
	_, err = drv.Subscribe(ctx, "c")
	wantNotSent(t, err, context.Canceled)
	late := driver.Bound(context.Background(), 0)
	defer late.Stop()
	_, err = drv.SetNX(late, "k", "v", time.Minute)
	wantNotSent(t, err, context.DeadlineExceeded)
	if n := m.TotalConnectionCount(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	pool := clients.RedigoPool(m.Addr())
	defer pool.Close()
	drv, err := redigo.New(pool)
	must(t, err)
	sub, err := drv.Subscribe(t.Context(), "c")
	must(t, err)
	defer sub.Close()
	must(t, drv.Close())
	_, err = drv.SetNX(t.Context(), "k", "v", time.Minute)
	wantNotSent(t, err, driver.ErrClosed)
	_, err = drv.Eval(t.Context(), incr, []string{"k"}, nil)
	wantNotSent(t, err, driver.ErrClosed)
	_, err = drv.Subscribe(t.Context(), "c")
	wantNotSent(t, err, driver.ErrClosed)
	for _, r := range drv.(driver.Batcher).EvalMany(t.Context(), make([]driver.Call, 2)) {
		wantNotSent(t, r.Err, driver.ErrClosed)
	}
	if drv.(driver.Backgrounder).Background(func(context.Context) {}) {
		t.Error("background work runs after Close")
	}
	if err := drv.Close(); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	conn := pool.Get() // still the caller's
	defer conn.Close()
	if _, err := conn.Do("PING"); err != nil {
		t.Errorf("the pool after Close: %v", err)
	}
}

// Of what a server says to a login, the command itself was not sent.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{
		Password: "secret",
		Args:     []string{"--user", "app", "on", ">pass", "~lock:*", "+set"},
	})
	login := func(user, password string) []redis.DialOption {
		return []redis.DialOption{redis.DialUsername(user), redis.DialPassword(password)}
	}
	for name, c := range map[string]struct {
		options []redis.DialOption
		want    string
		sent    bool
	}{
		"none":           {nil, "NOAUTH ", true},
		"wrong password": {login("", "wrong"), "WRONGPASS ", false},
		"wrong user":     {login("nobody", "secret"), "WRONGPASS ", false},
		"not allowed":    {login("app", "pass"), "NOPERM ", true},
		"password":       {login("", "secret"), "", true},
	} {
		drv := open(t, clients.RedigoPool(s.Addr(), c.options...))
		set, err := drv.SetNX(t.Context(), name, "v", time.Minute)
		if c.want == "" {
			if !set || err != nil {
				t.Errorf("%s: %v, %v", name, set, err)
			}
			continue
		}
		wantServerError(t, err, c.want)
		if !driver.NotExecuted(err) || errors.Is(err, driver.ErrNotSent) == c.sent || driver.Transient(err) {
			t.Errorf("%s: %v, not executed %v, transient %v", name, err, driver.NotExecuted(err), driver.Transient(err))
		}
	}
}

// Also: a handshake that hangs, of which redis.DialContext does not tell its context, holds no
// call.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{TLS: redistest.MutualTLS})
	config := s.TLSConfig(true)
	drivers := map[string]driver.Driver{
		"redigo's":   open(t, clients.RedigoPool(s.Addr(), redis.DialUseTLS(true), redis.DialTLSConfig(config))),
		"tls.Dialer": open(t, clients.RedigoPool(s.Addr(), redis.DialContextFunc((&tls.Dialer{Config: config}).DialContext))),
	}
	for name, drv := range drivers {
		if set, err := drv.SetNX(t.Context(), name, "v", time.Minute); !set || err != nil {
			t.Errorf("%s: %v, %v", name, set, err)
		}
	}
	untrusting := open(t, clients.RedigoPool(s.Addr(), redis.DialUseTLS(true)))
	_, err := untrusting.SetNX(t.Context(), "k", "v", time.Minute)
	wantNotSent(t, err, driver.ErrNotSent)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Errorf("error %v, want the certificate's", err)
	}

	must(t, s.Freeze())
	for _, drv := range drivers {
		for i := range 2 {
			answered := setNX(bound(t, context.Background(), soon), drv, "late")
			if err := returned(t, answered).err; !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNotSent) != (i == 1) {
				t.Errorf("call %d: %v", i, err)
			}
		}
	}
	must(t, s.Thaw())
}

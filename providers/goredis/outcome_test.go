package goredis_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestRepliesToSetNX(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reply string
		set   bool
		fails bool
	}{
		{reply: "+OK\r\n", set: true},
		{reply: "$-1\r\n"},
		{reply: "_\r\n"},
		{reply: "+QUEUED\r\n", fails: true},
		{reply: "$0\r\n\r\n", fails: true},
		{reply: ":1\r\n", fails: true},
		{reply: "#f\r\n", fails: true},
		{reply: "*1\r\n+OK\r\n", fails: true},
		{reply: "%1\r\n+OK\r\n+OK\r\n", fails: true},
		{reply: "-ERR syntax error\r\n", fails: true},
		{reply: hangUp, fails: true},
	} {
		f := &fake{answer: func([]string) string { return tt.reply }}
		set, err := newDriver(t, single(f.options())).SetNX(t.Context(), "k", "v", time.Minute)
		if set != tt.set || (err != nil) != tt.fails {
			t.Errorf("answered %q: SetNX = %v, %v; want %v, error %v", tt.reply, set, err, tt.set, tt.fails)
		}
		if n := f.count("SET"); n != 1 {
			t.Errorf("answered %q: %d SETs were sent, want 1", tt.reply, n)
		}
	}
}

// A failure before the command left is reported as such. A cluster client looks at a command before
// it finds a connection: only some of its errors prove it.
func TestNotSent(t *testing.T) {
	t.Parallel()
	refused := errors.New("no thanks")
	const wrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	for name, tt := range map[string]struct {
		answer      string
		set         func(*redis.Options)
		closed      bool
		onlySingle  bool
		noSubscribe bool
		want        error
		text        string
	}{
		"dial": {set: func(o *redis.Options) {
			o.DialerRetries = 1
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: refused}
			}
		}, want: refused},
		"closed client": {closed: true, want: redis.ErrClosed},
		"limiter":       {set: func(o *redis.Options) { o.Limiter = limiter{refused} }, onlySingle: true, noSubscribe: true, want: refused},
		"login":         {answer: "-" + wrongPass + "\r\n", set: func(o *redis.Options) { o.Password = "x" }, onlySingle: true, text: wrongPass},
		"cut at login":  {answer: hangUp, set: func(o *redis.Options) { o.Password = "x" }, onlySingle: true},
	} {
		for kindName, kind := range kinds {
			if tt.onlySingle && kindName != "single" {
				continue
			}
			for opName, operation := range operations {
				if tt.noSubscribe && opName == "Subscribe" || opName == "EvalAcked" && kindName == "unknown" {
					continue
				}
				t.Run(name+"/"+kindName+"/"+opName, func(t *testing.T) {
					t.Parallel()
					clients.Bubble(t, func(t *testing.T) {
						f := &fake{answer: func([]string) string { return tt.answer }}
						opts := f.options()
						if tt.set != nil {
							tt.set(opts)
						}
						client := kind(opts)
						if tt.closed {
							_ = client.Close()
						}
						err := operation(t.Context(), newDriver(t, client))
						if !errors.Is(err, driver.ErrNotSent) || tt.want != nil && !errors.Is(err, tt.want) {
							t.Errorf("error %v, want ErrNotSent and %v", err, tt.want)
						}
						if tt.closed && driver.Transient(err) {
							t.Errorf("error %v of a closed client may pass", err)
						}
						var reply *driver.ServerError
						var own redis.Error
						if tt.text != "" && (!errors.As(err, &reply) || reply.Text != tt.text || !errors.As(err, &own)) {
							t.Errorf("error %v, want a ServerError %q with the client's own below", err, tt.text)
						}
					})
				})
			}
		}
	}
}

// With a used-up pool a call waits no longer than its context or the client's options allow, and
// nothing is sent. (In real time: go-redis keeps the timers of these waits for later ones, and a
// bubble's must not leave it.)
func TestPoolInUse(t *testing.T) {
	t.Parallel()
	shortly := func() (context.Context, func()) {
		//realtime:ok the pool is in use all the time
		b := bounded.New(context.Background(), 10*time.Millisecond)
		return b, b.Stop
	}
	unbounded := func() (context.Context, func()) { return context.Background(), func() {} }
	type test struct {
		set        func(*redis.Options)
		newContext func() (context.Context, func())
		want       error
	}
	check.Each(t, map[string]test{
		"deadline":    {func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, time.Hour }, shortly, context.DeadlineExceeded},
		"PoolTimeout": {func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 10*time.Millisecond }, unbounded, redis.ErrPoolTimeout},
		"limit":       {func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 2, 1 }, unbounded, redis.ErrPoolExhausted},
	}, func(t *testing.T, tt test) {
		busy := make(chan struct{})
		inUse := sync.OnceFunc(func() { close(busy) })
		f := &fake{answer: func([]string) string { inUse(); return silence }}
		opts := f.options()
		opts.ContextTimeoutEnabled, opts.ReadTimeout = true, -1
		tt.set(opts)
		drv := newDriver(t, redis.NewClient(opts))
		occupied, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _, _ = drv.SetNX(occupied, "k", "v", time.Minute) }()
		<-busy

		ctx, stop := tt.newContext()
		defer stop()
		_, err := drv.SetNX(ctx, "k", "v", time.Minute)
		if !errors.Is(err, tt.want) || !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("error %v, want %v and ErrNotSent", err, tt.want)
		}
	})
}

// limiter refuses everything.
type limiter struct{ err error }

func (l limiter) Allow() error     { return l.err }
func (limiter) ReportResult(error) {}

// A hook that fails a command before it is sent, or swallows it, is not taken for the server.
func TestHooksInBetween(t *testing.T) {
	t.Parallel()
	veto := errors.New("veto")
	for _, outcome := range []error{veto, nil} {
		f := &fake{answer: func([]string) string { return "+OK\r\n" }}
		client := single(f.options())
		client.AddHook(hook(func(context.Context, []redis.Cmder, func(context.Context) error) error { return outcome }))
		drv := newDriver(t, client)
		for name, operation := range map[string]func(context.Context, driver.Driver) error{
			"SetNX": operations["SetNX"], "Eval": operations["Eval"], "Evals": evals,
		} {
			err := operation(t.Context(), drv)
			if err == nil || outcome != nil && (!errors.Is(err, veto) || !errors.Is(err, driver.ErrNotSent)) {
				t.Errorf("%s, hook returns %v: error %v", name, outcome, err)
			}
		}
	}
}

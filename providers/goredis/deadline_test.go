package goredis_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
)

var testScript = driver.NewScript(`return redis.call("INCR", KEYS[1])`)

// patience is the time limit of a call's context, in the fake time of a bubble.
const patience = time.Second

// operations are the calls with a command.
var operations = map[string]func(ctx context.Context, drv driver.Driver) error{
	"SetNX": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.SetNX(ctx, "k", "v", time.Minute)
		return err
	},
	"Eval": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.Eval(ctx, testScript, []string{"k"}, nil)
		return err
	},
	"EvalAcked": func(ctx context.Context, drv driver.Driver) error {
		_, _, err := drv.EvalAcked(ctx, testScript, []string{"k"}, nil, 1, patience/2)
		return err
	},
	"Subscribe": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.Subscribe(ctx, "c")
		return err
	},
}

// evals makes concurrent calls that travel together. It returns the error of one that may have been
// sent, if any, or nil if a call succeeded.
func evals(ctx context.Context, drv driver.Driver) error {
	var wg sync.WaitGroup
	errs := make([]error, 40)
	for i := range errs {
		wg.Go(func() { _, errs[i] = drv.Eval(ctx, testScript, []string{"k"}, nil) })
	}
	wg.Wait()
	for _, err := range errs {
		if !errors.Is(err, driver.ErrNotSent) {
			return err
		}
	}
	return errs[0]
}

// setups are a user's settings of the client that matter to deadlines. Its own timeouts, if any,
// are far longer than patience.
var setups = map[string]struct {
	kind func(*redis.Options) redis.UniversalClient
	opts redis.Options
}{
	"defaults":                  {single, redis.Options{}},
	"no timeouts":               {single, redis.Options{ReadTimeout: -1, WriteTimeout: -1}},
	"no deadlines":              {single, redis.Options{ReadTimeout: -2, WriteTimeout: -2}},
	"obeys":                     {single, redis.Options{ContextTimeoutEnabled: true}},
	"obeys, long timeouts":      {single, redis.Options{ContextTimeoutEnabled: true, ReadTimeout: time.Hour}},
	"obeys, no timeouts":        {single, redis.Options{ContextTimeoutEnabled: true, ReadTimeout: -1}},
	"obeys, no read deadlines":  {single, redis.Options{ContextTimeoutEnabled: true, ReadTimeout: -2, WriteTimeout: time.Hour}},
	"obeys, no write deadlines": {single, redis.Options{ContextTimeoutEnabled: true, WriteTimeout: -2}},
	"obeys, no deadlines":       {single, redis.Options{ContextTimeoutEnabled: true, ReadTimeout: -2}},
	"obeys, no pipeline pool":   {single, redis.Options{ContextTimeoutEnabled: true, PipelinePoolSize: -1}},
	"cluster, defaults":         {cluster, redis.Options{}},
	"cluster, obeys":            {cluster, redis.Options{ContextTimeoutEnabled: true}},
	"cluster, obeys, ReadOnly":  {readOnlyCluster, redis.Options{ContextTimeoutEnabled: true}},
	"cluster, no deadlines":     {cluster, redis.Options{ContextTimeoutEnabled: true, ReadTimeout: -2}},
	"of an unknown type":        {unknown, redis.Options{}},
	"of an unknown type, obeys": {unknown, redis.Options{ContextTimeoutEnabled: true}},
}

// A function of the user that hangs in the login delays no caller beyond its ctx.
func TestHangingLogin(t *testing.T) {
	t.Parallel()
	for kindName, kind := range map[string]func(*redis.Options) redis.UniversalClient{"single": single, "cluster": cluster} {
		for name, set := range map[string]func(o *redis.Options, hang func()){
			"CredentialsProvider": func(o *redis.Options, hang func()) {
				o.CredentialsProvider = func() (string, string) { hang(); return "", "" }
			},
			"CredentialsProviderContext": func(o *redis.Options, hang func()) {
				o.CredentialsProviderContext = func(context.Context) (string, string, error) { hang(); return "", "", nil }
			},
			"StreamingCredentialsProvider": func(o *redis.Options, hang func()) { o.StreamingCredentialsProvider = streaming(hang) },
			"OnConnect": func(o *redis.Options, hang func()) {
				o.OnConnect = func(context.Context, *redis.Conn) error { hang(); return nil }
			},
		} {
			t.Run(kindName+"/"+name, func(t *testing.T) {
				t.Parallel()
				clients.Bubble(t, func(t *testing.T) {
					o := (&fake{answer: func([]string) string { return "+OK\r\n" }}).options()
					o.ContextTimeoutEnabled = true
					set(o, func() { check.Advance(time.Hour) })
					drv, began := newDriver(t, kind(o)), time.Now()
					ctx := bounded.New(context.Background(), patience) //realtime:ok in a bubble of clients
					defer ctx.Stop()
					_, err := drv.SetNX(ctx, "k", "v", time.Minute)
					check.Error(t, "SetNX", err, driver.ErrNotSent)
					check.AtMost(t, "SetNX", time.Since(began), 2*patience)
					check.Advance(2 * time.Hour)
				})
			})
		}
	}
}

// streaming is a provider of credentials that calls a function first.
type streaming func()

func (s streaming) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	s()
	return auth.NewBasicCredentials("", "x"), func() error { return nil }, nil
}

// A goroutine is spent only if nothing cheaper ends the call: if it may be cancelled, or the client
// ignores deadlines.
func TestWhereTheCallRuns(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func([]string) string { return "+OK\r\n" }}
	cancelable, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	contexts := map[string]context.Context{
		"background": context.Background(),
		"bounded":    bounded.New(context.Background(), time.Hour),
		"cancelable": bounded.New(cancelable, time.Hour),
	}
	for clientName, c := range setups {
		for ctxName, ctx := range contexts {
			t.Run(clientName+"/"+ctxName, func(t *testing.T) {
				t.Parallel()
				opts := c.opts
				opts.Addr, opts.Dialer = "192.0.2.1:6379", f.dial
				client := c.kind(&opts)
				var ranOn string
				client.AddHook(sees(func(context.Context) { ranOn = goroutine() }))
				if _, err := newDriver(t, client).SetNX(ctx, "k", "v", time.Minute); err != nil {
					t.Fatal(err)
				}
				obeys := map[string]bool{
					"obeys": true, "obeys, long timeouts": true, "obeys, no timeouts": true, "obeys, no pipeline pool": true,
					"cluster, obeys": true,
				}[clientName]
				want := ctxName == "background" || ctxName == "bounded" && obeys
				if direct := ranOn == goroutine(); direct != want {
					t.Errorf("in the caller's goroutine: %v, want %v", direct, want)
				}
			})
		}
	}
}

// goroutine returns a name of the running goroutine, as in "goroutine 7 ".
func goroutine() string {
	buf := make([]byte, 64)
	name, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte("["))
	return string(name)
}

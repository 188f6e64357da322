package goredis_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
)

var testScript = driver.NewScript(`return redis.call("INCR", KEYS[1])`)

// patience is how long a call's context lasts, in the fake time of a bubble.
const patience = time.Second

// contexts are those that a call may come with; each ends after patience. stop frees it, as a
// strategy would.
var contexts = map[string]func() (ctx context.Context, stop func()){
	"bounded": func() (context.Context, func()) {
		b := driver.Bound(context.Background(), patience)
		return b, b.Stop
	},
	"bounded by its parent": func() (context.Context, func()) {
		parent, cancel := context.WithTimeout(context.Background(), patience)
		b := driver.Bound(parent, time.Hour)
		return b, func() { b.Stop(); cancel() }
	},
	"canceled": func() (context.Context, func()) {
		ctx, cancel := context.WithCancel(context.Background())
		timer := time.AfterFunc(patience, cancel)
		return ctx, func() { timer.Stop(); cancel() }
	},
}

// operations are the calls that send something.
var operations = map[string]func(ctx context.Context, drv driver.Driver) error{
	"SetNX": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.SetNX(ctx, "k", "v", time.Minute)
		return err
	},
	"Eval": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.Eval(ctx, testScript, []string{"k"}, nil)
		return err
	},
	"EvalMany": func(ctx context.Context, drv driver.Driver) error {
		call := driver.Call{Script: testScript, Keys: []string{"k"}}
		return batcher(drv).EvalMany(ctx, []driver.Call{call, call})[1].Err
	},
	"EvalAcked": func(ctx context.Context, drv driver.Driver) error {
		_, _, err := drv.(driver.Acknowledger).EvalAcked(ctx, testScript, []string{"k"}, nil, 1, patience/2)
		return err
	},
	"Subscribe": func(ctx context.Context, drv driver.Driver) error {
		_, err := drv.Subscribe(ctx, "c")
		return err
	},
}

// setups are the ways in which a user may have set up the client, as far as it matters to
// deadlines. Timeouts of its own are far longer than patience, if there are any.
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

// stuck makes opts' client get stuck somewhere until awake is closed.
var stuck = map[string]func(opts *redis.Options, awake chan struct{}){
	"dialing": func(opts *redis.Options, awake chan struct{}) {
		opts.Dialer = func(context.Context, string, string) (net.Conn, error) { // as over TLS, it ignores its context
			<-awake
			return nil, errors.New("no route")
		}
	},
	"handshake": func(opts *redis.Options, awake chan struct{}) {
		opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, far) }()
			go func() { <-awake; _ = far.Close() }() // a client without timeouts has no other end
			return near, nil
		}
	},
	"write": func(opts *redis.Options, awake chan struct{}) {
		opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() { <-awake; _ = far.Close() }()
			return near, nil
		}
	},
	"reply": func(opts *redis.Options, _ chan struct{}) {
		f := &fake{answer: func(words []string) string {
			if words[0] == "command" { // a ReadOnly cluster client asks for the list of commands
				return "*0\r\n"
			}
			return silence
		}}
		opts.Dialer = f.dial
	},
}

func TestCallsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	for clientName, c := range setups {
		for place, getStuck := range stuck {
			for ctxName, newContext := range contexts {
				for opName, operation := range operations {
					t.Run(strings.Join([]string{clientName, place, ctxName, opName}, "/"), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							rest(t)
							opts := c.opts
							awake := make(chan struct{})
							getStuck(&opts, awake)
							opts.Addr = "192.0.2.1:6379"
							drv := newDriver(t, c.kind(&opts))
							defer close(awake)

							ctx, stop := newContext()
							defer stop()
							started := time.Now()
							err := operation(ctx, drv)
							if errors.Is(err, errors.ErrUnsupported) { // WAIT, of a client of an unknown type
								return
							}
							if took := time.Since(started); took != patience {
								t.Errorf("took %v, want exactly %v", took, patience)
							}
							synctest.Wait() // ctx's timer and the client's fire at the same instant
							if !errors.Is(err, ctx.Err()) {
								t.Errorf("error %v, want %v in its chain", err, ctx.Err())
							}
							// Only "reply" gets beyond the handshake.
							if want := place != "reply"; opName != "Subscribe" && errors.Is(err, driver.ErrNotSent) != want {
								t.Errorf("error %v: known not to be sent: %t, want %t", err, !want, want)
							}
						})
					})
				}
			}
		}
	}
}

// When the deadline was hit by the client's i/o timeout, both can be found.
func TestTimeoutKeepsTheClientsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func([]string) string { return silence }}
		drv := newDriver(t, redis.NewClient(f.options()))
		ctx := driver.Bound(context.Background(), patience)
		defer ctx.Stop()
		_, err := drv.SetNX(ctx, "k", "v", time.Minute)
		var timeout net.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() || driver.NotExecuted(err) {
			t.Errorf("error %v, want an open outcome, DeadlineExceeded and the client's timeout", err)
		}
	})
}

// A goroutine is spent only where nothing cheaper ends the call: when it may be canceled, or the
// client ignores deadlines.
func TestWhereTheCallRuns(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func([]string) string { return "+OK\r\n" }}
	cancelable, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	contexts := map[string]context.Context{
		"background": context.Background(),
		"bounded":    driver.Bound(context.Background(), time.Hour),
		"cancelable": driver.Bound(cancelable, time.Hour),
	}
	for clientName, c := range setups {
		for ctxName, ctx := range contexts {
			t.Run(clientName+"/"+ctxName, func(t *testing.T) {
				t.Parallel()
				opts := c.opts
				opts.Addr, opts.Dialer = "192.0.2.1:6379", f.dial
				client := c.kind(&opts)
				var ranOn string
				client.AddHook(processHook(func(context.Context, redis.Cmder) { ranOn = goroutine() }))
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

// processHook is a client's hook that sees each command before it is sent.
type processHook func(context.Context, redis.Cmder)

func (h processHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h processHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "set" || cmd.Name() == "evalsha" {
			h(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

func (h processHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

package rueidis_test

import (
	"context"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// fake is a client whose commands are answered by answer.
type fake struct {
	redis.Client
	answer func(ctx context.Context) redis.RedisResult
}

func (f *fake) Do(ctx context.Context, _ redis.Completed) redis.RedisResult { return f.answer(ctx) }

func (f *fake) Nodes() map[string]redis.Client {
	return map[string]redis.Client{"b:1": nil, "a:2": nil}
}

func (f *fake) Mode() redis.ClientMode { return redis.ClientModeStandalone }

func TestNewRefusesNil(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]redis.Client{"nil": nil, "a nil pointer": (*fake)(nil)} {
		if _, err := rueidis.New(client); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("New(%s): %v, want an InvalidError", name, err)
		}
	}
}

// With ConnLifetime rueidis sends a command again that is in flight on a connection that expires.
func TestNewRefusesConnLifetime(t *testing.T) {
	t.Parallel()
	for name, options := range clientKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t)
			dial(t, opts)
			opts.ConnLifetime = time.Hour
			var invalid *driver.InvalidError
			if _, err := rueidis.New(newClient(t, opts)); !errors.As(err, &invalid) || !strings.Contains(invalid.Got, "ConnLifetime") {
				t.Errorf("New: %v, want an InvalidError that names ConnLifetime", err)
			}
		})
	}
}

// clientKinds are all the types of client that NewClient makes.
var clientKinds = map[string]func(t *testing.T) redis.ClientOption{
	"forced single": func(t *testing.T) redis.ClientOption { return single(miniredis.RunT(t).Addr()) },
	"single": func(t *testing.T) redis.ClientOption {
		return redis.ClientOption{InitAddress: []string{server.Get(t).Addr()}}
	},
	"with replicas": func(t *testing.T) redis.ClientOption {
		opts := single(miniredis.RunT(t).Addr())
		opts.Standalone.ReplicaAddress = opts.InitAddress
		opts.SendToReplicas = func(cmd redis.Completed) bool { return cmd.IsReadOnly() }
		return opts
	},
	"cluster": func(t *testing.T) redis.ClientOption {
		return redis.ClientOption{InitAddress: cluster.Get(t).Addrs()}
	},
	"Sentinel": func(t *testing.T) redis.ClientOption {
		s := sentinel.Get(t)
		return redis.ClientOption{InitAddress: s.SentinelAddrs(), Sentinel: redis.SentinelOption{MasterSet: s.MasterName()}}
	},
}

func TestSetNX(t *testing.T) {
	t.Parallel()
	drv := dial(t, single(miniredis.RunT(t).Addr()))
	for i, want := range []bool{true, false} {
		if set, err := drv.SetNX(t.Context(), "k", "v", time.Minute); set != want || err != nil {
			t.Errorf("SetNX %d: %v, %v; want %v", i, set, err, want)
		}
	}
}

func TestSetNXRefusesOtherReplies(t *testing.T) {
	t.Parallel()
	client := newClient(t, single(miniredis.RunT(t).Addr()))
	for name, cmd := range map[string]redis.Completed{
		"PONG":       client.B().Ping().Build(),
		"an integer": client.B().Incr().Key("n").Build(),
		"a list":     client.B().Smembers().Key("s").Build(),
	} {
		reply := client.Do(t.Context(), cmd)
		drv := newDriver(t, &fake{client, func(context.Context) redis.RedisResult { return reply }})
		if set, err := drv.SetNX(t.Context(), "k", "v", time.Minute); set || err == nil || driver.NotExecuted(err) {
			t.Errorf("SET NX answered with %s: %v, %v; want an error of unknown outcome", name, set, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	cancelled := &net.OpError{Op: "dial", Err: context.Canceled}
	cases := []struct {
		name    string
		err     error
		notSent bool
		is      error // that the result must match
		isNot   error // that it must not match
	}{
		{name: "EOF", err: io.EOF, is: io.EOF},
		{name: "reset", err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, is: syscall.ECONNRESET},
		{name: "refused", err: refused, notSent: true, is: syscall.ECONNREFUSED},
		{name: "no slot", err: redis.ErrNoSlot, notSent: true, is: redis.ErrNoSlot},
		{name: "first ErrClosing", err: redis.ErrClosing, is: redis.ErrClosing},
		{name: "another call's deadline", err: context.DeadlineExceeded, isNot: context.DeadlineExceeded},
		{name: "another call's cancel while dialing", err: cancelled, notSent: true, isNot: context.Canceled},
	}
	client := newClient(t, single(miniredis.RunT(t).Addr()))
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			drv := newDriver(t, &fake{client, func(context.Context) redis.RedisResult { return redis.NewErrorResult(c.err) }})
			_, err := drv.Eval(t.Context(), increment, []string{"k"}, nil)
			if err == nil || errors.Is(err, driver.ErrNotSent) != c.notSent {
				t.Errorf("%v; want ErrNotSent: %v", err, c.notSent)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v; want what matches %v", err, c.is)
			}
			if c.isNot != nil && errors.Is(err, c.isNot) {
				t.Errorf("%v; must not match %v", err, c.isNot)
			}
			if se := new(driver.ServerError); errors.As(err, &se) {
				t.Errorf("%v is no error of the server's", err)
			}
		})
	}
}

// early is a context whose deadline has passed and whose timer has yet to fire.
type early struct{ context.Context }

func (early) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

func TestDeadlineOfTheConnectionComesFirst(t *testing.T) {
	t.Parallel()
	client := newClient(t, single(miniredis.RunT(t).Addr()))
	drv := newDriver(t, &fake{client, func(context.Context) redis.RedisResult { return redis.NewErrorResult(context.DeadlineExceeded) }})
	_, err := drv.SetNX(early{t.Context()}, "k", "v", time.Minute)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrNotSent) {
		t.Errorf("%v; want DeadlineExceeded of unknown outcome", err)
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	p := mini(t)
	drv := dial(t, single(p.Addr()))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	over, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, over: context.DeadlineExceeded} {
		for name, err := range sendAll(ctx, drv) {
			if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, want) {
				t.Errorf("%s: %v, want ErrNotSent and %v", name, err, want)
			}
		}
	}
	if n := p.Count(about("k")); n > 0 {
		t.Errorf("%d commands were sent", n)
	}
}

// about matches a command with key as one of its arguments.
func about(key string) faultproxy.Match {
	return func(args []string) bool { return slices.Contains(args, key) }
}

// sendAll calls each method that sends something about the key k.
func sendAll(ctx context.Context, drv driver.Driver) map[string]error {
	errs := map[string]error{}
	_, errs["SetNX"] = drv.SetNX(ctx, "k", "v", time.Minute)
	_, errs["Eval"] = drv.Eval(ctx, compare, []string{"k"}, []string{"v"})
	errs["EvalMany"] = drv.(driver.Batcher).EvalMany(ctx, []driver.Call{{Script: compare, Keys: []string{"k"}, Args: []string{"v"}}})[0].Err
	_, errs["Subscribe"] = drv.Subscribe(ctx, "k")
	return errs
}

func TestServerErrors(t *testing.T) {
	t.Parallel()
	drv := dial(t, redis.ClientOption{InitAddress: []string{server.Get(t).Addr()}})
	for _, want := range []string{
		"MYCODE with a text", "ERR with a text", "ERR DB is upper case", "OOM command not allowed when used memory > 'maxmemory'.",
	} {
		raise := driver.NewScript(`return redis.error_reply(ARGV[1])`)
		_, err := drv.Eval(t.Context(), raise, nil, []string{want})
		var se *driver.ServerError
		if !errors.As(err, &se) || se.Text != want {
			t.Errorf("%v; want a ServerError with text %q", err, want)
		}
		if _, ok := errors.AsType[*redis.RedisError](err); !ok {
			t.Errorf("%v: the client's own error is not reachable", err)
		}
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	drv := dial(t, redis.ClientOption{InitAddress: []string{server.Get(t).Addr()}})
	list, err := drv.Eval(t.Context(), driver.NewScript(`return {7, "text", false, ARGV[1]}`), nil, []string{"arg"})
	if err != nil {
		t.Fatal(err)
	}
	n, err0 := list.Int(0)
	text, err1 := list.Text(1)
	arg, err3 := list.Text(3)
	if err := errors.Join(err0, err1, err3); err != nil || n != 7 || text != "text" || !list.IsNil(2) || arg != "arg" || list.Len() != 4 {
		t.Errorf("list: %v, %v", list, err)
	}
	for source, want := range map[string]any{
		`return 9007199254740993`: int64(9007199254740992), // Lua has floats only
		`return "x"`:              "x",
		`return false`:            nil,
		`return {}`:               []any{},
		`return redis.call("SET", "replies", "v")`: "OK",
	} {
		wanted, err := driver.NewReply(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := drv.Eval(t.Context(), driver.NewScript(source), []string{"replies"}, nil)
		if err != nil || !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %v, %v; want %v", source, got, err, wanted)
		}
	}
	for _, source := range []string{`return {1, {2}}`, `redis.setresp(3) return {double = 1.5}`, `redis.setresp(3) return {map = {a = 1}}`} {
		if got, err := drv.Eval(t.Context(), driver.NewScript(source), nil, nil); err == nil || driver.NotExecuted(err) {
			t.Errorf("%s: %v, %v; want an error of unknown outcome", source, got, err)
		}
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	if got, want := dial(t, single(m.Addr())).Info(), (driver.Info{Client: "rueidis", Address: m.Addr()}); got != want {
		t.Errorf("Info: %v, want %v", got, want)
	}
	if got := newDriver(t, &fake{}).Info().Address; got != "a:2,b:1" {
		t.Errorf("Info of two nodes: %q", got)
	}
	addrs := cluster.Get(t).Addrs()
	slices.Sort(addrs)
	if got, want := dial(t, redis.ClientOption{InitAddress: addrs[:1]}).Info().Address, strings.Join(addrs, ","); got != want {
		t.Errorf("Info of a cluster: %q, want %q", got, want)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	client := newClient(t, single(miniredis.RunT(t).Addr()))
	drv := newDriver(t, client)
	sub, err := drv.Subscribe(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := drv.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := drv.Close(); err != driver.ErrClosed { //nolint:errorlint // this very error
		t.Errorf("second Close: %v, want ErrClosed", err)
	}
	for name, err := range sendAll(t.Context(), drv) {
		if !errors.Is(err, driver.ErrClosed) || !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	_ = sub.Close()
	if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the user's client after the driver's Close: %v", err)
	}
}

func TestClosedClient(t *testing.T) {
	t.Parallel()
	client := newClient(t, single(miniredis.RunT(t).Addr()))
	drv := newDriver(t, client)
	client.Close()
	for i, notSent := range []bool{false, true, true} {
		if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); !errors.Is(err, redis.ErrClosing) || errors.Is(err, driver.ErrNotSent) != notSent {
			t.Errorf("SetNX %d: %v; want ErrClosing and ErrNotSent: %v", i, err, notSent)
		}
	}
}

// A client that was closed stays so, of each kind.
func TestClosedClientIsFinal(t *testing.T) {
	t.Parallel()
	for name, options := range clientKinds {
		client := newClient(t, options(t))
		drv := newDriver(t, client)
		if _, err := drv.SetNX(t.Context(), t.Name()+name, "v", time.Second); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client.Close()
		var err error
		for range 3 { // the first to fail so proves nothing
			_, err = drv.SetNX(t.Context(), "k", "v", time.Second)
		}
		if driver.Transient(err) || !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, redis.ErrClosing) {
			t.Errorf("%s: SetNX through a closed client: %v, transient: %v", name, err, driver.Transient(err))
		}
	}
}

package rueidis_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// fake is a client with its answers in answer.
type fake struct {
	redis.Client
	answer func(ctx context.Context) redis.RedisResult
}

func (f *fake) Do(ctx context.Context, _ redis.Completed) redis.RedisResult { return f.answer(ctx) }

func (f *fake) Nodes() map[string]redis.Client {
	return map[string]redis.Client{"b:1": nil, "a:2": nil}
}

func (f *fake) Mode() redis.ClientMode { return redis.ClientModeStandalone }

// mini are the options of a client of a miniredis of its own.
func mini(t *testing.T) redis.ClientOption {
	return redis.ClientOption{
		InitAddress: []string{miniredis.RunT(t).Addr()}, DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true,
	}
}

// With ConnLifetime rueidis resends a command in flight on an expiring connection.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	expiring := mini(t)
	expiring.ConnLifetime = time.Hour
	for want, client := range map[string]redis.Client{
		"nil <nil>": nil, "nil *rueidis_test.fake": (*fake)(nil), "ConnLifetime": newClient(t, expiring),
	} {
		_, err := rueidis.New(client)
		if invalid, ok := errors.AsType[*driver.InvalidError](err); !ok || !strings.Contains(invalid.Got, want) {
			t.Errorf("New: %v, want an InvalidError that names %s", err, want)
		}
	}
}

// A closed client stays closed: nothing is sent through it.
func TestClosedClient(t *testing.T) {
	t.Parallel()
	client := newClient(t, mini(t))
	drv := newDriver(t, client)
	answered(t, drv, 1)
	client.Close()
	for range 3 {
		_, err := drv.SetNX(t.Context(), "k", "v", time.Minute)
		check.Is(t, err, redis.ErrClosing, driver.ErrNotSent, driver.ErrPermanent)
	}
}

// early is a context past its deadline, before its timer has fired.
type early struct{ context.Context }

func (early) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

func TestErrors(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	cancelled := &net.OpError{Op: "dial", Err: context.Canceled}
	type test struct {
		err     error
		notSent bool
		is      error // matched by the result
		isNot   error // not matched by the result
		early   bool  // the deadline of the call has passed
	}
	client := newClient(t, mini(t))
	check.Each(t, map[string]test{
		"EOF":                      {err: io.EOF, is: io.EOF},
		"reset":                    {err: &net.OpError{Op: "read", Err: syscall.ECONNRESET}, is: syscall.ECONNRESET},
		"refused":                  {err: refused, notSent: true, is: syscall.ECONNREFUSED},
		"no slot":                  {err: redis.ErrNoSlot, notSent: true, is: redis.ErrNoSlot},
		"first ErrClosing":         {err: redis.ErrClosing, is: redis.ErrClosing},
		"another call's deadline":  {err: context.DeadlineExceeded, isNot: context.DeadlineExceeded},
		"the deadline comes first": {err: context.DeadlineExceeded, is: context.DeadlineExceeded, early: true},
		"another call's cancel while dialing": {
			err: cancelled, notSent: true, isNot: context.Canceled,
		},
	}, func(t *testing.T, c test) {
		drv := newDriver(t, &fake{client, func(context.Context) redis.RedisResult { return redis.NewErrorResult(c.err) }})
		ctx := t.Context()
		if c.early {
			ctx = early{ctx}
		}
		_, err := drv.Eval(ctx, increment, []string{"k"}, nil)
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

func TestInfo(t *testing.T) {
	t.Parallel()
	opts := mini(t)
	if got, want := dial(t, opts).Info(), (driver.Info{Client: "rueidis", Address: opts.InitAddress[0]}); got != want {
		t.Errorf("Info: %v, want %v", got, want)
	}
	check.Equal(t, "Info of two nodes", newDriver(t, &fake{}).Info().Address, "a:2,b:1")
}

// The client stays the user's after the driver's Close.
func TestTheClientStaysTheUsers(t *testing.T) {
	t.Parallel()
	client := newClient(t, mini(t))
	check.Error(t, "Close", newDriver(t, client).Close())
	check.Error(t, "the user's client after the driver's Close", client.Do(t.Context(), client.B().Ping().Build()).Error())
}

// A command written before the client's Close may be executed, though rueidis answers ErrClosing.
func TestClientClosedInFlight(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		opts := single(m.Net.Dial, p.Addr())
		opts.AlwaysPipelining = true
		client := newClient(t, opts)
		drv := newDriver(t, client)
		trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET"), Fault: faultproxy.Stall})
		errs := make(chan error, 1)
		go func() {
			_, err := drv.SetNX(context.Background(), "k", "v", time.Minute)
			errs <- err
		}()
		<-trap.Hit()
		client.Close()
		if err := <-errs; !errors.Is(err, redis.ErrClosing) || driver.NotExecuted(err) {
			t.Errorf("%v; want ErrClosing, and the outcome unknown", err)
		}
	})
}

// A server's error has the client's own below it. A reply type of RESP3 alone is refused.
func TestRepliesOfRESP3(t *testing.T) {
	t.Parallel()
	drv := dial(t, redis.ClientOption{InitAddress: []string{server.Get(t).Addr()}})
	_, err := drv.Eval(t.Context(), driver.NewScript(`return redis.error_reply("ERR DB is upper case")`), nil, nil)
	if _, ok := errors.AsType[*redis.RedisError](err); !ok || driver.CodeOf(err) != "ERR" {
		t.Errorf("%v: the client's own error is not reachable", err)
	}
	for _, source := range []string{`return {1, {2}}`, `redis.setresp(3) return {double = 1.5}`, `redis.setresp(3) return {map = {a = 1}}`} {
		if got, err := drv.Eval(t.Context(), driver.NewScript(source), nil, nil); err == nil || driver.NotExecuted(err) {
			t.Errorf("%s: %v, %v; want an error of unknown outcome", source, got, err)
		}
	}
}

// Scripts without keys travel beside scripts with keys, though rueidis does not mix them.
func TestCallsWithAndWithoutKeys(t *testing.T) {
	t.Parallel()
	drv := dial(t, redis.ClientOption{InitAddress: cluster.Get(t).Addrs()})
	without := driver.NewScript(`return 1`)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			script, keys := without, []string(nil)
			if i%3 > 0 {
				script, keys = increment, []string{lease.NewToken()}
			}
			r, err := drv.Eval(t.Context(), script, keys, nil)
			if n, _ := r.Int(0); err != nil || n != 1 {
				t.Errorf("call %d: %d, %v; want 1", i, n, err)
			}
		})
	}
	wg.Wait()
}

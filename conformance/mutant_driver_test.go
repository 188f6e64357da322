package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// flawedDriver is a sound driver with a flaw: what is not nil replaces the method.
type flawedDriver struct {
	driver.Driver
	setNX     func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error)
	eval      func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error)
	subscribe func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error)
	close     func(d driver.Driver) error
}

func (f flawedDriver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if f.setNX != nil {
		return f.setNX(ctx, f.Driver, key, value, ttl)
	}
	return f.Driver.SetNX(ctx, key, value, ttl)
}

func (f flawedDriver) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if f.eval != nil {
		return f.eval(ctx, f.Driver, s, keys, args)
	}
	return f.Driver.Eval(ctx, s, keys, args)
}

func (f flawedDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if f.subscribe != nil {
		return f.subscribe(ctx, f.Driver, channel)
	}
	return f.Driver.Subscribe(ctx, channel)
}

func (f flawedDriver) Close() error {
	if f.close != nil {
		return f.close(f.Driver)
	}
	return f.Driver.Close()
}

// again calls send a second time after an outcome that is open, as clients with retries do.
func again[T any](ctx context.Context, send func() (T, error)) (T, error) {
	v, err := send()
	if err != nil && !driver.NotExecuted(err) && ctx.Err() == nil {
		return send()
	}
	return v, err
}

// mapped changes every error of both commands.
func mapped(change func(error) error) flawedDriver {
	return flawedDriver{
		setNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			set, err := d.SetNX(ctx, key, value, ttl)
			return set, change(err)
		},
		eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			return r, change(err)
		},
	}
}

// oneByOneAfterDeadline takes a caller's deadline for a dead connection, and then opens a single
// other one.
func oneByOneAfterDeadline() flawedDriver {
	var dead atomic.Bool
	var other sync.Mutex
	return flawedDriver{eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
		if dead.Load() {
			other.Lock()
			defer other.Unlock()
		}
		r, err := d.Eval(ctx, s, keys, args)
		if errors.Is(err, context.DeadlineExceeded) {
			dead.Store(true)
		}
		return r, err
	}}
}

// silent never wakes.
type silent struct{ driver.Subscription }

func (silent) Wake() <-chan struct{} { return nil }

// kept is never given up.
type kept struct{ driver.Subscription }

func (kept) Close() error { return nil }

var flawedDrivers = []struct {
	name   string
	flaw   flawedDriver
	caught []string
}{
	{
		"sends again by itself",
		flawedDriver{
			setNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
				return again(ctx, func() (bool, error) { return d.SetNX(ctx, key, value, ttl) })
			},
			eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
				return again(ctx, func() (driver.Reply, error) { return d.Eval(ctx, s, keys, args) })
			},
		},
		[]string{"a cut connection leaves the command open", "error replies are never tried again"},
	},
	{
		"takes no answer for nil",
		flawedDriver{setNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			set, err := d.SetNX(ctx, key, value, ttl)
			if err != nil && ctx.Err() == nil {
				return false, nil
			}
			return set, err
		}},
		[]string{"a cut connection leaves the command open", "refusals of the server are told"},
	},
	{
		"hangs on in a call",
		flawedDriver{
			setNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
				return d.SetNX(context.WithoutCancel(ctx), key, value, ttl)
			},
			eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
				return d.Eval(context.WithoutCancel(ctx), s, keys, args)
			},
		},
		[]string{
			"a cancel returns soon", "a deadline returns soon", "a bounded context returns soon", "a context that is over sends nothing",
		},
	},
	{
		"sends one by one after a deadline",
		oneByOneAfterDeadline(),
		[]string{"a hopeless deadline slows nobody else"},
	},
	{
		"rounds the expiry to seconds",
		flawedDriver{setNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			return d.SetNX(ctx, key, value, (ttl + time.Second - 1).Truncate(time.Second))
		}},
		[]string{"set is exact to the millisecond"},
	},
	{
		"overwrites",
		flawedDriver{setNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			_, err := d.Eval(ctx, script(`redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000)`), []string{key}, []string{value})
			return err == nil, err
		}},
		[]string{"set leaves a taken key alone", "set leaves a key of another type alone"},
	},
	{
		"says that nothing was sent",
		mapped(driver.NotSent),
		[]string{
			"a lost reply leaves the command open", "a cut connection leaves the command open", "a connection cut before leaves the command open",
			"a late command runs once",
		},
	},
	{
		"never says that nothing was sent",
		mapped(func(err error) error {
			if errors.Is(err, driver.ErrNotSent) {
				return errors.New(err.Error())
			}
			return err
		}),
		[]string{"a context that is over sends nothing", "a refused connection sends nothing", "a closed driver says so"},
	},
	{
		"strips the code of errors",
		mapped(func(err error) error {
			if se, ok := errors.AsType[*driver.ServerError](err); ok {
				_, text, _ := strings.Cut(se.Text, " ")
				return &driver.ServerError{Text: text, Err: se.Err}
			}
			return err
		}),
		[]string{"error replies keep their text", "refusals of the server are told"},
	},
	{
		"shows the arguments of a command",
		flawedDriver{eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			if se, ok := errors.AsType[*driver.ServerError](err); ok {
				return r, &driver.ServerError{Text: se.Text, Err: fmt.Errorf("%w: %q", se.Err, args)}
			}
			return r, err
		}},
		[]string{"error replies show no arguments"},
	},
	{
		"takes an error reply for an outage",
		mapped(func(err error) error {
			if driver.CodeOf(err) != "" {
				return errors.New(err.Error())
			}
			return err
		}),
		[]string{"error replies keep their text", "refusals of the server are told"},
	},
	{
		"sends the source of every script",
		flawedDriver{eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			return d.Eval(ctx, script(s.Source()+"\n-- "+strings.Join(keys, "")), keys, args)
		}},
		[]string{"a script is sent by digest"},
	},
	{
		"takes nil for an empty string",
		flawedDriver{eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			if err == nil && r.Len() == 1 && r.IsNil(0) {
				return driver.NewReply("")
			}
			return r, err
		}},
		[]string{"replies have one form"},
	},
	{
		"changes the caller's arguments",
		flawedDriver{eval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			clear(args)
			return r, err
		}},
		[]string{"slices are the caller's again"},
	},
	{
		"never wakes",
		flawedDriver{subscribe: func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error) {
			sub, err := d.Subscribe(ctx, channel)
			if err != nil {
				return nil, err
			}
			return silent{sub}, nil
		}},
		[]string{
			"subscribe returns confirmed", "messages of one channel wake its listeners only", "a reconnect wakes", "a release wakes a waiter",
			"a closed subscription is given up",
		},
	},
	{
		"listens to something else",
		flawedDriver{subscribe: func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error) {
			return d.Subscribe(ctx, channel+"else")
		}},
		[]string{"subscribe returns confirmed", "a release is published"},
	},
	{
		"leaves a subscription",
		flawedDriver{
			subscribe: func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error) {
				sub, err := d.Subscribe(ctx, channel)
				if err != nil {
					return nil, err
				}
				return kept{sub}, nil
			},
			close: func(driver.Driver) error { return nil },
		},
		[]string{"messages of one channel wake its listeners only"},
	},
	{
		"stays open",
		flawedDriver{close: func(driver.Driver) error { return nil }},
		[]string{"a closed driver says so", "close ends subscriptions", "a closed driver ends the use of its locks"},
	},
}

// TestFlawedDrivers demands that the suite fails on drivers that do what clients are known to do.
func TestFlawedDrivers(t *testing.T) { //nolint:tparallel // the cases ran at once, only their reports come one by one
	t.Parallel()
	var suspects []suspect
	for _, f := range flawedDrivers {
		flawed := &Harness{Lacks: []Feature{FeatureBatch, FeatureReplicas}, Dial: func(tb TB, target Target) (driver.Driver, error) {
			d, err := plain(tb, target)
			if err != nil {
				return nil, err
			}
			tb.Cleanup(func() { _ = d.Close() }) // in case that the flaw leaves it open
			with := f.flaw
			with.Driver = d
			return &with, nil
		}}
		suspects = append(suspects, suspect{f.name, flawed, &Harness{Dial: plain}, f.caught})
	}
	suspects = append(suspects, suspect{
		"declares missing what it has",
		&Harness{Dial: plain, Lacks: features}, &Harness{Dial: without, Lacks: features}, []string{lackCases[0].name},
	})
	convict(t, suspects)
}

// without dials what has no features.
func without(tb TB, target Target) (driver.Driver, error) {
	if target.Kind == Cluster || target.Kind == Sentinel || target.TLS != nil {
		return nil, errors.ErrUnsupported
	}
	d, err := plain(tb, target)
	return &flawedDriver{Driver: d, subscribe: func(context.Context, driver.Driver, string) (driver.Subscription, error) {
		return nil, errors.ErrUnsupported
	}}, err
}

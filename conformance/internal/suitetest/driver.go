package suitetest

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/respdriver"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Dial makes a sound driver without a client library.
func Dial(_ testing.TB, target suite.Target) (driver.Driver, error) {
	return respdriver.New(respdriver.Config{
		Addrs: target.Addrs, Cluster: target.Kind == suite.Cluster, MasterName: target.MasterName,
		Username: target.Username, Password: target.Password, TLS: target.TLS, Dial: target.Dial,
	}), nil
}

// Driver is a sound driver with a flaw: a non-nil function replaces the method.
type Driver struct {
	driver.Driver
	OnSetNX     func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error)
	OnEval      func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error)
	OnSubscribe func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error)
	OnClose     func(d driver.Driver) error
}

// Flaws to be caught by cases of both suites.
var (
	NeverWakes = Driver{OnSubscribe: func(ctx context.Context, d driver.Driver,
		channel string) (driver.Subscription, error) {
		sub, err := d.Subscribe(ctx, channel)
		if err != nil {
			return nil, err
		}
		return silent{sub}, nil
	}}
	ListensElsewhere = Driver{OnSubscribe: func(ctx context.Context, d driver.Driver,
		channel string) (driver.Subscription, error) {
		return d.Subscribe(ctx, channel+"else")
	}}
	StaysOpen = Driver{OnClose: func(driver.Driver) error { return nil }}
)

// Mapped is a driver with the errors of both commands changed.
func Mapped(change func(error) error) Driver {
	return Driver{
		OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			set, err := d.SetNX(ctx, key, value, ttl)
			return set, change(err)
		},
		OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			return r, change(err)
		},
	}
}

// silent never wakes.
type silent struct{ driver.Subscription }

func (silent) Wake() <-chan struct{} { return nil }

// Dial makes a driver with the flaw of f.
func (f Driver) Dial(tb testing.TB, target suite.Target) (driver.Driver, error) {
	d, err := Dial(tb, target)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { _ = d.Close() }) // the flaw may leave it open
	f.Driver = d
	return &f, nil
}

// SetNX implements driver.Driver.
func (f *Driver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	if f.OnSetNX != nil {
		return f.OnSetNX(ctx, f.Driver, key, value, ttl)
	}
	return f.Driver.SetNX(ctx, key, value, ttl)
}

// Eval implements driver.Driver.
func (f *Driver) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	if f.OnEval != nil {
		return f.OnEval(ctx, f.Driver, s, keys, args)
	}
	return f.Driver.Eval(ctx, s, keys, args)
}

// Subscribe implements driver.Driver.
func (f *Driver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if f.OnSubscribe != nil {
		return f.OnSubscribe(ctx, f.Driver, channel)
	}
	return f.Driver.Subscribe(ctx, channel)
}

// Close implements driver.Driver.
func (f *Driver) Close() error {
	if f.OnClose != nil {
		return f.OnClose(f.Driver)
	}
	return f.Driver.Close()
}

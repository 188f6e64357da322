package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/respdriver"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// again calls send a second time after an unknown outcome, as clients with retries do.
func again[T any](ctx context.Context, send func() (T, error)) (T, error) {
	v, err := send()
	if err != nil && !driver.NotExecuted(err) && ctx.Err() == nil {
		return send()
	}
	return v, err
}

// oneByOneAfterDeadline takes a caller's deadline for a dead connection, and then opens a single
// other one.
func oneByOneAfterDeadline() suitetest.Driver {
	var others sync.Map // for each driver with a dead connection, a channel as lock of its calls
	return suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
		if other, dead := others.Load(d); dead {
			slot := other.(chan struct{})
			slot <- struct{}{}
			defer func() { <-slot }()
		}
		r, err := d.Eval(ctx, s, keys, args)
		if errors.Is(err, context.DeadlineExceeded) {
			others.LoadOrStore(d, make(chan struct{}, 1))
		}
		return r, err
	}}
}

// silentAtClose forgets the callers waiting for Close.
type silentAtClose struct{ *respdriver.Driver }

func (silentAtClose) UntilClose() context.Context { return context.Background() }

// kept is never unsubscribed.
type kept struct{ driver.Subscription }

func (kept) Close() error { return nil }

var flawedDrivers = []struct {
	name   string
	flaw   suitetest.Driver
	caught []string
}{
	{
		"sends again by itself",
		suitetest.Driver{
			OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
				return again(ctx, func() (bool, error) { return d.SetNX(ctx, key, value, ttl) })
			},
			OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
				return again(ctx, func() (driver.Reply, error) { return d.Eval(ctx, s, keys, args) })
			},
		},
		[]string{"a cut connection leaves the outcome unknown", "error replies are never tried again", "calls at the same time are sent once"},
	},
	{
		"takes no answer for nil",
		suitetest.Driver{OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			set, err := d.SetNX(ctx, key, value, ttl)
			if err != nil && ctx.Err() == nil {
				return false, nil
			}
			return set, err
		}},
		[]string{"a cut connection leaves the outcome unknown", "refusals of the server are reported"},
	},
	{
		"takes a part of a reply for the reply",
		suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			if err != nil && ctx.Err() == nil && !errors.Is(err, driver.ErrNotSent) && driver.CodeOf(err) == "" {
				return driver.NewReply([]any{})
			}
			return r, err
		}},
		[]string{"a connection cut within the reply leaves the outcome unknown"},
	},
	{
		"hangs on in a call",
		suitetest.Driver{
			OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
				return d.SetNX(context.WithoutCancel(ctx), key, value, ttl)
			},
			OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
				return d.Eval(context.WithoutCancel(ctx), s, keys, args)
			},
		},
		[]string{
			"a cancel returns soon", "a deadline returns soon", "a bounded context returns soon", "an ended context sends nothing",
			"a call returns while its client connects",
		},
	},
	{
		"sends one by one after a deadline",
		oneByOneAfterDeadline(),
		[]string{"a hopeless deadline slows nobody else"},
	},
	{
		"gives an answer to the wrong caller", amongOthers(0, swapped),
		[]string{"calls at the same time get their own answers"},
	},
	{
		"ends all calls with one", amongOthers(0, endedTogether),
		[]string{"a caller that leaves fails nobody"},
	},
	{
		"sends again what travelled with others", amongOthers(0, resentTogether),
		[]string{"calls at the same time are sent once"},
	},
	{
		"sends again what travelled with an unknown script", resentUnknown(),
		[]string{"calls at the same time send unknown scripts once"},
	},
	{
		"sends what it said was not sent", amongOthers(4, keptInQueue),
		[]string{"what many callers left unsent is never sent"},
	},
	{
		"waits for a silent connection", amongOthers(1, inLine),
		[]string{"silent connections delay only what is on them"},
	},
	{
		"waits for replies to nobody", amongOthers(16, inLine),
		[]string{"callers that have left keep no connection"},
	},
	{
		"rounds the expiry to seconds",
		suitetest.Driver{OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			return d.SetNX(ctx, key, value, (ttl + time.Second - 1).Truncate(time.Second))
		}},
		[]string{"set is exact to the millisecond"},
	},
	{
		"overwrites",
		suitetest.Driver{OnSetNX: func(ctx context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			_, err := d.Eval(ctx, script(`redis.call('SET', KEYS[1], ARGV[1], 'PX', 60000)`), []string{key}, []string{value})
			return err == nil, err
		}},
		[]string{"set leaves a taken key alone", "set leaves a key of another type alone"},
	},
	{
		"says that nothing was sent",
		suitetest.Mapped(driver.NotSent),
		[]string{
			"a lost reply leaves the outcome unknown", "a cut connection leaves the outcome unknown", "a connection cut before the command ran leaves the outcome unknown",
			"a late command runs once",
		},
	},
	{
		"never says that nothing was sent",
		suitetest.Mapped(func(err error) error {
			if errors.Is(err, driver.ErrNotSent) {
				return errors.New(err.Error())
			}
			return err
		}),
		[]string{"an ended context sends nothing", "a refused connection sends nothing", "a closed driver returns ErrClosed"},
	},
	{
		"hides why there was no connection",
		suitetest.Mapped(func(err error) error {
			if errors.Is(err, syscall.ECONNREFUSED) {
				return driver.NotSent(context.DeadlineExceeded)
			}
			return err
		}),
		[]string{"a caller that leaves learns why there was no connection"},
	},
	{
		"strips the code of errors",
		suitetest.Mapped(func(err error) error {
			if se, ok := errors.AsType[*driver.ServerError](err); ok {
				_, text, _ := strings.Cut(se.Text, " ")
				return &driver.ServerError{Text: text, Err: se.Err}
			}
			return err
		}),
		[]string{"error replies keep their text", "refusals of the server are reported"},
	},
	{
		"shows the arguments of a command",
		suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
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
		suitetest.Mapped(func(err error) error {
			if driver.CodeOf(err) != "" {
				return errors.New(err.Error())
			}
			return err
		}),
		[]string{"error replies keep their text", "refusals of the server are reported"},
	},
	{
		"sends the source of every script",
		suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			return d.Eval(ctx, script(s.Source()+"\n-- "+strings.Join(keys, "")), keys, args)
		}},
		[]string{"a script is sent by digest"},
	},
	{
		"takes nil for an empty string",
		suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
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
		suitetest.Driver{OnEval: func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
			r, err := d.Eval(ctx, s, keys, args)
			clear(args)
			return r, err
		}},
		[]string{"slices belong to the caller after a call"},
	},
	{
		"never wakes", suitetest.NeverWakes,
		[]string{
			"subscribe returns confirmed", "messages of one channel wake its listeners only", "a reconnect wakes every subscription",
			"a closed subscription is unsubscribed",
		},
	},
	{
		"listens to something else", suitetest.ListensElsewhere,
		[]string{"subscribe returns confirmed"},
	},
	{
		"unsubscribes after ten seconds",
		suitetest.Driver{OnSubscribe: func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error) {
			sub, err := d.Subscribe(ctx, channel)
			if err == nil {
				time.AfterFunc(10*time.Second, func() { _ = sub.Close() }) //realtime:ok mutants run in bubbles
			}
			return sub, err
		}},
		[]string{"a subscription outlasts a silence"},
	},
	{
		"leaves a subscription",
		suitetest.Driver{
			OnSubscribe: func(ctx context.Context, d driver.Driver, channel string) (driver.Subscription, error) {
				sub, err := d.Subscribe(ctx, channel)
				if err != nil {
					return nil, err
				}
				return kept{sub}, nil
			},
			OnClose: func(driver.Driver) error { return nil },
		},
		[]string{"messages of one channel wake its listeners only"},
	},
	{
		"stays open", suitetest.StaysOpen,
		[]string{"a closed driver returns ErrClosed", "close ends subscriptions"},
	},
}

// The suite fails on drivers with the known flaws of clients.
func TestFlawedDrivers(t *testing.T) {
	t.Parallel()
	var list []suitetest.Mutant
	for _, f := range flawedDrivers {
		flawed := Harness{Dial: func(tb testing.TB, target Target) (driver.Driver, error) {
			return f.flaw.Dial(tb, suite.Target(target))
		}}
		list = append(list, suitetest.Mutant{Name: f.name, Flawed: flawed.suite(), Caught: f.caught})
	}
	inMemory := func(f Feature) bool { return f == FeatureDial || f == FeatureDialError }
	nothing := slices.DeleteFunc(slices.Clone(suite.Features), inMemory)
	list = append(list, suitetest.Mutant{
		Name:   "declares missing what it has",
		Flawed: Harness{Dial: dial, Lacks: nothing}.suite(),
		Sound:  Harness{Dial: without, Lacks: nothing}.suite(),
		Caught: []string{lackCases[0].name},
	}, suitetest.Mutant{
		Name: "closes without a word",
		Flawed: Harness{Dial: func(tb testing.TB, target Target) (driver.Driver, error) {
			d, err := dial(tb, target)
			return silentAtClose{d.(*respdriver.Driver)}, err
		}}.suite(),
		Caught: []string{"close tells who waits for it"},
	})
	suitetest.Catch(t, list)
}

func without(tb testing.TB, target Target) (driver.Driver, error) {
	if target.Kind == Cluster || target.Kind == Sentinel || target.TLS != nil {
		return nil, errors.ErrUnsupported
	}
	d, err := dial(tb, target)
	return lacking{d}, err
}

// lacking is a driver without features.
type lacking struct{ driver.Driver }

func (lacking) Subscribe(context.Context, string) (driver.Subscription, error) {
	return nil, errors.ErrUnsupported
}

func (lacking) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	return new(adapter.Base).EvalAcked(ctx, s, keys, args, replicas, timeout)
}

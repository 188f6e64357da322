//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/respdriver"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/conformance/internal/suitetest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// flawedDriver makes a Harness of the default strategies over d.
func flawedDriver(d suitetest.Driver) *Harness {
	return &Harness{Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
		return d.Dial(tb, suite.Target(target))
	}}
}

// errorReplyNotSent reports a command as not sent after an error reply.
func errorReplyNotSent(err error) error {
	if driver.CodeOf(err) != "" {
		return driver.NotSent(errors.New(err.Error()))
	}
	return err
}

// loadsOnce dials a driver that sends a script by digest alone after the first send.
func loadsOnce(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	var sent sync.Map // by digest
	eval := func(ctx context.Context, d driver.Driver, s *driver.Script, keys, args []string) (driver.Reply, error) {
		c, err := suite.Connect(ctx, suite.Target(target))
		if err != nil {
			return driver.Reply{}, err
		}
		defer c.Close()
		there, err := c.Do("SCRIPT", "EXISTS", s.Digest())
		_, before := sent.LoadOrStore(s.Digest(), true)
		if list, _ := there.([]any); err == nil && before && len(list) == 1 && list[0] == int64(0) {
			err = &driver.ServerError{Text: "NOSCRIPT No matching script."}
		}
		if err != nil {
			return driver.Reply{}, err
		}
		return d.Eval(ctx, s, keys, args)
	}
	d := suitetest.Driver{OnEval: eval}
	return d.Dial(tb, suite.Target(target))
}

// idle is a driver that drops background work.
type idle struct{ driver.Driver }

func (idle) Background(func(context.Context)) bool { return true }

func dialIdle(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
	d, err := plain(tb, target)
	return &idle{d}, err
}

// undrained is a driver whose Close does not wait for acquires.
type undrained struct{ *respdriver.Driver }

func (undrained) BeginAcquire() (end func(), err error) { return func() {}, nil }

// unexplained is a driver that gives no reason for a script not sent.
type unexplained struct{ *respdriver.Driver }

func (d unexplained) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	r, err := d.Driver.Eval(ctx, s, keys, args)
	if errors.Is(err, driver.ErrNotSent) {
		err = driver.NotSent(errors.New(err.Error()))
	}
	return r, err
}

// leaseFunc is a function as Lease.
type leaseFunc func(ctx context.Context, op lease.Op) (lease.Result, error)

func (f leaseFunc) Do(ctx context.Context, op lease.Op) (lease.Result, error) { return f(ctx, op) }

func TestMutantsOfOutcomes(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.add("an error reply taken for a command that was not sent", flawedDriver(suitetest.Mapped(errorReplyNotSent)), sound,
		"an unknown server error leaves the outcome unknown", "TRYAGAIN is transient")
	m.add("a command that is not sent for an unknown reason", &Harness{
		Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
			d, err := plain(tb, target)
			return &unexplained{d.(*respdriver.Driver)}, err
		},
	}, sound, "a release that could not be sent is resent")
	m.add("a script that is loaded once", &Harness{Dial: loadsOnce}, sound, "scripts may be flushed while a lock is held")
	m.add("background work that is dropped", &Harness{Dial: dialIdle}, sound,
		"a release of unknown outcome is resent", "a refused release is resent")
	m.add("a Close that does not wait for acquires", &Harness{
		Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
			d, err := plain(tb, target)
			return &undrained{d.(*respdriver.Driver)}, err
		},
	}, sound, "an acquire in flight when the driver closes fails")
	m.add("SET NX that is answered before it is executed", flawedDriver(suitetest.Driver{
		OnSetNX: func(_ context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
			time.AfterFunc(time.Millisecond, func() { _, _ = d.SetNX(context.Background(), key, value, ttl) })
			return true, nil
		},
	}), sound, "consecutive calls do not disturb one another", "consecutive calls of a quorum do not disturb one another")

	operation := func(name string, do operates, caught ...string) {
		m.add(name, &Harness{Dial: plain, Around: operating(do)}, sound, caught...)
	}
	operation("a renewal whose failure is a loss", func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		result, err := l.Lease.Do(ctx, op)
		if op.Kind == lease.OpRenew && err != nil {
			err = locker.ErrLost
		}
		return result, err
	}, "a refused renewal changes nothing", "a renewal of unknown outcome changes nothing")
	operation("a renewal that counts without an answer", func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		result, err := l.Lease.Do(ctx, op)
		if op.Kind == lease.OpRenew && errors.Is(err, locker.ErrUnknownOutcome) {
			return lease.Result{Deadline: time.Now().Add(op.TTL)}, nil
		}
		return result, err
	}, "a renewal of unknown outcome changes nothing")
	operation("a lost lock that is not released", func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		if op.Kind == lease.OpRelease && errors.Is(l.hold.Err(), locker.ErrLost) {
			return lease.Result{}, locker.ErrLost
		}
		return l.Lease.Do(ctx, op)
	}, "a release after a loss is still sent")
	operation("a release that returns before it is sent", func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		if op.Kind == lease.OpRelease {
			time.AfterFunc(time.Millisecond, func() { _, _ = l.Lease.Do(context.WithoutCancel(ctx), op) })
			return lease.Result{}, nil
		}
		return l.Lease.Do(ctx, op)
	}, "a release is final", "consecutive calls do not disturb one another")
	m.convict()
}

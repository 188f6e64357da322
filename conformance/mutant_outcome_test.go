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

// mapped is a driver that changes every error.
func mapped(change func(error) error) suitetest.Driver {
	return suitetest.Driver{
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

// errorReplyNotSent takes an error reply for a command that was not sent.
func errorReplyNotSent(err error) error {
	if driver.CodeOf(err) != "" {
		return driver.NotSent(errors.New(err.Error()))
	}
	return err
}

// loadsOnce dials a driver that sends a script by digest alone once it has sent it.
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

func (undrained) BeginAcquire() error { return nil }
func (undrained) EndAcquire()         {}

// operation is an operation of the lock of h, with the Lease l.
type operation func(ctx context.Context, h lease.Hold, l lease.Lease, op lease.Op) (lease.Term, error)

// opsBy makes middleware whose locks do each operation by f.
func opsBy(f operation) locker.Middleware {
	return func(inner locker.Locker) locker.Locker {
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := inner.Acquire(ctx, req)
			if err == nil {
				h := lock.Hold()
				h.Wrap(func(l lease.Lease) lease.Lease {
					return leaseFunc(func(ctx context.Context, op lease.Op) (lease.Term, error) { return f(ctx, h, l, op) })
				})
			}
			return lock, err
		})
	}
}

// leaseFunc is a function that is a Lease.
type leaseFunc func(ctx context.Context, op lease.Op) (lease.Term, error)

func (f leaseFunc) Do(ctx context.Context, op lease.Op) (lease.Term, error) { return f(ctx, op) }

func TestMutantsOfOutcomes(t *testing.T) {
	t.Parallel()
	late := func(_ context.Context, d driver.Driver, key, value string, ttl time.Duration) (bool, error) {
		time.AfterFunc(time.Millisecond, func() { _, _ = d.SetNX(context.Background(), key, value, ttl) })
		return true, nil
	}
	sound := &Harness{Dial: plain}
	var suspects []suspect
	for _, m := range []struct {
		name   string
		flawed *Harness
		caught []string
	}{
		{
			"an error reply taken for a command that was not sent",
			flawedDriver(mapped(errorReplyNotSent)),
			[]string{"an unknown server error leaves the outcome unknown", "TRYAGAIN is transient"},
		},
		{
			"a script that is loaded once", &Harness{Dial: loadsOnce},
			[]string{"scripts may be flushed while a lock is held"},
		},
		{
			"background work that is dropped", &Harness{Dial: dialIdle},
			[]string{"a release of unknown outcome is resent", "a refused release is resent"},
		},
		{
			"a Close that does not wait for acquires",
			&Harness{Dial: func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
				d, err := plain(tb, target)
				return &undrained{d.(*respdriver.Driver)}, err
			}},
			[]string{"an acquire in flight when the driver closes fails"},
		},
		{
			"SET NX that is answered before it is executed", flawedDriver(suitetest.Driver{OnSetNX: late}),
			[]string{
				"consecutive calls do not disturb one another", "consecutive calls of a quorum do not disturb one another",
			},
		},
	} {
		suspects = append(suspects, suspect{m.name, m.flawed, sound, m.caught})
	}
	for _, m := range []struct {
		name   string
		do     operation
		caught []string
	}{
		{
			"a renewal whose failure is a loss",
			func(ctx context.Context, _ lease.Hold, l lease.Lease, op lease.Op) (lease.Term, error) {
				term, err := l.Do(ctx, op)
				if op.Kind == lease.OpRenew && err != nil {
					err = locker.ErrLost
				}
				return term, err
			},
			[]string{"a refused renewal changes nothing", "a renewal of unknown outcome changes nothing"},
		},
		{
			"a renewal that counts without an answer",
			func(ctx context.Context, _ lease.Hold, l lease.Lease, op lease.Op) (lease.Term, error) {
				term, err := l.Do(ctx, op)
				if op.Kind == lease.OpRenew && errors.Is(err, locker.ErrUnknownOutcome) {
					return lease.Term{Deadline: time.Now().Add(op.TTL)}, nil
				}
				return term, err
			},
			[]string{"a renewal of unknown outcome changes nothing"},
		},
		{
			"a lost lock that is not released",
			func(ctx context.Context, h lease.Hold, l lease.Lease, op lease.Op) (lease.Term, error) {
				if op.Kind == lease.OpRelease && errors.Is(h.Err(), locker.ErrLost) {
					return lease.Term{}, locker.ErrLost
				}
				return l.Do(ctx, op)
			},
			[]string{"a release after a loss is still sent"},
		},
		{
			"a release that returns before it is sent",
			func(ctx context.Context, _ lease.Hold, l lease.Lease, op lease.Op) (lease.Term, error) {
				if op.Kind == lease.OpRelease {
					time.AfterFunc(time.Millisecond, func() { _, _ = l.Do(context.WithoutCancel(ctx), op) })
					return lease.Term{}, nil
				}
				return l.Do(ctx, op)
			},
			[]string{"a release is final", "consecutive calls do not disturb one another"},
		},
	} {
		suspects = append(suspects, suspect{m.name, &Harness{Dial: plain, Around: opsBy(m.do)}, sound, m.caught})
	}
	convict(t, suspects)
}

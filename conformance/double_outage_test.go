//realtime:ok the calls run in a bubble

package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/lockerrors"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// outage is a Locker and a way to cut off its server.
type outage struct {
	locker.Locker
	begin func()
}

// outageTTL makes an attempt last for 200 ms.
const outageTTL = 600 * time.Millisecond

// outageCall makes a call during an outage, and returns its error.
type outageCall func(ctx context.Context, o outage) error

func acquireCall(req locker.Request) outageCall {
	req.Name, req.TTL = "a", outageTTL
	return func(ctx context.Context, o outage) error {
		o.begin()
		return acquireError(ctx, o, req)
	}
}

// holdCall calls f in the outage with a lock acquired before.
func holdCall(f func(ctx context.Context, o outage, lock *locker.Lock) error) outageCall {
	return func(ctx context.Context, o outage) error {
		lock, err := o.Acquire(ctx, locker.Request{Name: "a", TTL: outageTTL})
		if err != nil {
			return err
		}
		o.begin()
		return f(ctx, o, lock)
	}
}

// briefly is the context of a call that ends before an attempt.
func briefly(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, outageTTL/4)
}

var outageCalls = map[string]outageCall{
	"acquire until its deadline": func(ctx context.Context, o outage) error {
		o.begin()
		ctx, cancel := briefly(ctx)
		defer cancel()
		return acquireError(ctx, o, locker.Request{Name: "a", TTL: outageTTL})
	},
	"acquire until it is cancelled": func(ctx context.Context, o outage) error {
		o.begin()
		ctx, cancel := context.WithCancel(ctx)
		defer time.AfterFunc(outageTTL/4, cancel).Stop()
		return acquireError(ctx, o, locker.Request{Name: "a", TTL: outageTTL})
	},
	"acquire with MaxWait": acquireCall(locker.Request{MaxWait: outageTTL / 4}),
	"acquire with NoWait":  acquireCall(locker.Request{NoWait: true}),
	"acquire with middleware/retry": func(ctx context.Context, o outage) error {
		return acquireCall(locker.Request{MaxWait: outageTTL / 4})(ctx, outage{locker.Must(retry.New(retry.Config{}))(o.Locker), o.begin})
	},
	"wait for a holder with middleware/retry": func(ctx context.Context, o outage) error {
		if err := acquireError(ctx, o, locker.Request{Name: "a", TTL: time.Minute}); err != nil {
			return err
		}
		began := make(chan struct{})
		time.AfterFunc(outageTTL/4, func() {
			defer close(began)
			o.begin()
		})
		waiting := locker.Must(retry.New(retry.Config{}))(o.Locker)
		err := acquireError(ctx, waiting, locker.Request{Name: "a", TTL: outageTTL, MaxWait: outageTTL})
		<-began
		return err
	},
	"resume": holdCall(func(ctx context.Context, o outage, lock *locker.Lock) error {
		ctx, cancel := briefly(ctx)
		defer cancel()
		_, err := locker.Resume(ctx, o.Locker, lock.Handle())
		return err
	}),
	"renew": holdCall(func(ctx context.Context, _ outage, lock *locker.Lock) error {
		ctx, cancel := briefly(ctx)
		defer cancel()
		return errors.Join(lock.Renew(ctx, 0), lock.Err())
	}),
	"renew at the end of the lease": holdCall(func(ctx context.Context, _ outage, lock *locker.Lock) error {
		<-lock.Done()
		return lock.Renew(ctx, 0)
	}),
	"release": holdCall(func(ctx context.Context, _ outage, lock *locker.Lock) error { return lock.Release(ctx) }),
	"release with a cancelled ctx": holdCall(func(ctx context.Context, _ outage, lock *locker.Lock) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return lock.Release(ctx)
	}),
	"release by handle": holdCall(func(ctx context.Context, o outage, lock *locker.Lock) error {
		return lock.Handle().Release(ctx, o.Locker)
	}),
	"inspect": func(ctx context.Context, o outage) error {
		o.begin()
		ctx, cancel := briefly(ctx)
		defer cancel()
		_, err := locker.Inspect(ctx, o.Locker, "a")
		return err
	},
	"Do": func(ctx context.Context, o outage) error {
		return locker.Do(ctx, o.Locker, locker.Request{Name: "a", TTL: outageTTL}, func(ctx context.Context, _ *locker.Lock) error {
			o.begin()
			<-ctx.Done()
			return nil
		})
	},
}

func acquireError(ctx context.Context, l locker.Locker, req locker.Request) error {
	_, err := l.Acquire(ctx, req)
	return err
}

// classes returns the exported errors matched by err, and its Op.
func classes(err error) (list []string) {
	for name, class := range map[string]error{
		"ErrNotAcquired": locker.ErrNotAcquired, "ErrMaxWait": locker.ErrMaxWait, "ErrNotHeld": locker.ErrNotHeld, "ErrLost": locker.ErrLost,
		"ErrReleased": locker.ErrReleased, "ErrUnknownOutcome": locker.ErrUnknownOutcome, "ErrInvalid": locker.ErrInvalid,
		"driver.ErrNotSent": driver.ErrNotSent, "context.Canceled": context.Canceled, "context.DeadlineExceeded": context.DeadlineExceeded,
	} {
		if errors.Is(err, class) {
			list = append(list, name)
		}
	}
	if driver.Transient(err) {
		list = append(list, "transient")
	}
	if oe, ok := errors.AsType[*locker.OpError](err); ok {
		list = append(list, "OpError of "+oe.Op)
	}
	if ae, ok := errors.AsType[*lockerrors.AttemptError](err); ok {
		list = append(list, fmt.Sprintf("AttemptError, server known: %v", ae.Server != ""))
	}
	slices.Sort(list)
	return list
}

// The errors of an outage of the in-memory Locker match the same errors as those of
// strategies/single without its server.
func TestDoubleFailsAsStrategiesDo(t *testing.T) {
	t.Parallel()
	for _, kind := range []lockertest.Outage{lockertest.Refused, lockertest.Silent} {
		for what, call := range outageCalls {
			t.Run(kind.String()+"/"+what, func(t *testing.T) {
				t.Parallel()
				suite.Bubble(t, t.Name(), func(t *testing.T) {
					atLeast, actual := realOutage(t, kind, call)
					l := lockertest.New()
					began := time.Now()
					err := call(t.Context(), outage{l, func() { l.SetOutage(kind) }})
					if took := time.Since(began); took > atLeast+outageTTL/20 { // a Deadline of the strategy has a margin
						t.Errorf("the double's call takes %v, the strategy's %v", took, atLeast)
					}
					if got, want := classes(err), classes(actual); !slices.Equal(got, want) {
						t.Errorf("the double's error matches %v,\nthe strategy's %v:\n%v\n%v", got, want, err, actual)
					}
				})
			})
		}
	}
}

// realOutage makes a call of single over a server behind a proxy.
func realOutage(t *testing.T, kind lockertest.Outage, call outageCall) (took time.Duration, err error) {
	t.Helper()
	s := (&Harness{Dial: plain}).suite()
	s.RunMutant(t, &suite.Case{Run: func(t *suite.T) {
		t.LeavesKeys = true
		p, drv := t.Proxied()
		l, newErr := single.New(drv, single.Config{})
		t.OK(newErr, "single.New")
		began := time.Now()
		err = call(context.WithoutCancel(t.Ctx), outage{l, func() { beginOutage(t, l, p, kind) }})
		took = time.Since(began)
		p.Thaw()
		t.OK(errors.Join(p.Accept(), drv.Close()), "end of the outage")
	}}, suite.Memory)
	return took, err
}

// beginOutage cuts the server off. It returns once every earlier connection is closed.
func beginOutage(t *suite.T, l locker.Locker, p *faultproxy.Proxy, kind lockertest.Outage) {
	if kind == lockertest.Silent {
		p.Freeze()
		return
	}
	p.Refuse()
	p.CutAll()
	t.Eventually("nothing is sent", func() bool {
		ctx, cancel := context.WithTimeout(t.Ctx, outageTTL/6)
		defer cancel()
		_, err := l.Acquire(ctx, locker.Request{Name: "another", TTL: outageTTL})
		return errors.Is(err, driver.ErrNotSent) && !errors.Is(err, locker.ErrUnknownOutcome)
	})
}

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
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

type attempt func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error)

// attempts puts f between middleware/retry and the strategy, so that f's flaw looks like the
// middleware's own.
func attempts(f attempt) func(retry.Config) (locker.Middleware, error) {
	return func(cfg retry.Config) (locker.Middleware, error) {
		waits, err := retry.New(cfg)
		return func(inner locker.Locker) locker.Locker {
			return waits(attempting{inner, f})
		}, err
	}
}

// attempting is a Locker with a flawed Acquire alone.
type attempting struct {
	inner   locker.Locker
	acquire attempt
}

func (a attempting) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return a.acquire(ctx, req, a.inner)
}

func (a attempting) Unwrap() locker.Locker { return a.inner }

// seesAcquireAlone makes middleware/retry that sees only Acquire of a strategy, not its reentrancy
// or its closing.
func seesAcquireAlone(cfg retry.Config) (locker.Middleware, error) {
	waits, err := retry.New(cfg)
	return func(inner locker.Locker) locker.Locker { return waits(locker.Func(inner.Acquire)) }, err
}

// refusing makes attempts with refusals altered by change.
func refusing(change func(*locker.ContentionError)) attempt {
	return func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
		lock, err := l.Acquire(ctx, req)
		if held, ok := errors.AsType[*locker.ContentionError](err); ok {
			held := *held
			change(&held)
			err = &locker.OpError{Op: "acquire", Name: req.Name, Err: &held}
		}
		return lock, err
	}
}

// anonymous is an attempt with no holder's name in its refusal.
var anonymous = refusing(func(held *locker.ContentionError) { held.Owner = "" })

// untilDeadline is an attempt that ignores NoWait if ctx has a deadline.
func untilDeadline(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
	if _, ends := ctx.Deadline(); ends {
		req.NoWait = false
	}
	return l.Acquire(ctx, req)
}

func refuse(req locker.Request) (*locker.Lock, error) {
	return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.ContentionError{Name: req.Name}}
}

func TestMutantsThatWait(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	reentrant := func(waits func(retry.Config) (locker.Middleware, error)) *Harness {
		return &Harness{Dial: plain, Can: Capabilities{Reentrant: true, Hash: true}, New: newReentrant, waits: waits}
	}
	m.add("a reentrant strategy that does not say so", reentrant(seesAcquireAlone), reentrant(nil),
		"a nested acquire does not wait for the queue")
	m.add("an error taken for a refusal", reentrant(attempts(
		func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err != nil && !errors.Is(err, locker.ErrNotAcquired) && driver.Transient(err) {
				return refuse(req)
			}
			return lock, err
		},
	)), reentrant(nil), "a nested acquire outlives a transient error")
	const bounded = "an acquire that does not wait is bounded"
	m.add("NoWait and MaxWait that bound nothing", &Harness{
		Dial: plain, Around: corrects(func(req *locker.Request) { req.NoWait, req.MaxWait = false, 0 }),
	}, &Harness{Dial: plain}, bounded)
	m.add("a NoWait that a deadline makes slower", &Harness{
		Dial: plain, Around: acquires(untilDeadline),
	}, &Harness{Dial: plain}, bounded)
	m.add("a MaxWait that bounds the pauses alone", reentrant(attempts(
		func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			return l.Acquire(context.WithoutCancel(ctx), req)
		},
	)), reentrant(nil), bounded)
	m.add("a command that was not sent taken for contention", reentrant(attempts(
		func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err != nil && ctx.Err() != nil {
				return refuse(req)
			}
			return lock, err
		},
	)), reentrant(nil), bounded)
	m.convict()
}

// attemptsOnMessages makes middleware/retry that polls neither by its policy nor on a refusal's
// demand.
func attemptsOnMessages(cfg retry.Config) (locker.Middleware, error) {
	cfg.Policy = never
	return attempts(refusing(func(held *locker.ContentionError) { held.Left, held.RetryAfter = 0, 0 }))(cfg)
}

// hasty is a subscription returned before it is made. Making it does not wake.
type hasty struct {
	wake chan struct{}
	end  context.CancelFunc
}

func (h hasty) Wake() <-chan struct{} { return h.wake }

func (h hasty) Close() error {
	h.end()
	return nil
}

// hastyDriver is a driver with hasty subscriptions.
type hastyDriver struct{ *respdriver.Driver }

func (d hastyDriver) Subscribe(_ context.Context, channel string) (driver.Subscription, error) {
	ctx, end := context.WithCancel(context.Background())
	h := hasty{make(chan struct{}, 1), end}
	go func() {
		sub, err := d.Driver.Subscribe(ctx, channel)
		if err != nil {
			return
		}
		defer sub.Close()
		suite.Drain(sub)
		for {
			select {
			case <-sub.Wake():
				select {
				case h.wake <- struct{}{}:
				default:
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return h, nil
}

type result struct {
	lock *locker.Lock
	err  error
}

// newestFirst makes middleware/retry that gives each lock to the newest caller.
func newestFirst(cfg retry.Config) (locker.Middleware, error) {
	var mu sync.Mutex
	var callers []chan result
	return waitsUnder(func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
		own := make(chan result, 1)
		mu.Lock()
		callers = append(callers, own)
		mu.Unlock()
		go func() {
			lock, err := l.Acquire(ctx, req)
			mu.Lock()
			defer mu.Unlock()
			last := len(callers) - 1
			callers[last] <- result{lock, err}
			callers = callers[:last]
		}()
		r := <-own
		return r.lock, r.err
	})(cfg)
}

func TestMutantsOfQueues(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	waits := func(name string, waits func(retry.Config) (locker.Middleware, error), caught string) {
		m.add(name, &Harness{Dial: plain, waits: waits}, sound, caught)
	}
	waits("a refusal that does not say when the lease ends",
		attempts(refusing(func(held *locker.ContentionError) { held.Left, held.RetryAfter = 0, 0 })),
		"the end of a lease wakes a waiter")
	waits("a waiter that relies on its subscription", attemptsOnMessages, "a foreign release is found by polling")
	waits("a queue for each waiter", func(cfg retry.Config) (locker.Middleware, error) {
		return acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
			return locker.Must(retry.New(cfg))(inner).Acquire(ctx, req)
		}), nil
	}, "many waiters send one attempt at a time")
	waits("a waiter that learns of Close at its next attempt", seesAcquireAlone, "close ends the wait for a lock")
	waits("a queue that serves the newest first", newestFirst, "waiters of one process queue in order")
	waits("a place that is kept when its caller leaves",
		waitsUnder(func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
			acquired := make(chan result, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
				defer cancel()
				lock, err := l.Acquire(ctx, req)
				acquired <- result{lock, err}
			}()
			select {
			case r := <-acquired:
				return r.lock, r.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}), "a waiter that gives up passes its turn on")
	waits("a wait that ends with the bare cause",
		waitsUnder(func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if errors.Is(err, locker.ErrMaxWait) {
				err = &locker.OpError{Op: "acquire", Name: req.Name, Err: locker.ErrMaxWait}
			}
			return lock, err
		}), "a waiter gives up when its time is over")
	// Not of single: its waiters try again after 2 s.
	flawed := oneKey.harness(Capabilities{})
	flawed.Dial = func(tb testing.TB, target drivertest.Target) (driver.Driver, error) {
		d, err := plain(tb, target)
		return &hastyDriver{d.(*respdriver.Driver)}, err
	}
	m.add("a subscription that is returned before it is made", flawed, oneKey.harness(Capabilities{}),
		"a release before the subscription is not missed")
	m.convict()
}

package conformance

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// attempts puts f between middleware/retry and the strategy: waiting that is flawed as if the flaw
// were its own.
func attempts(f func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error)) func(retry.Config) (locker.Middleware, error) {
	return func(cfg retry.Config) (locker.Middleware, error) {
		waits, err := retry.New(cfg)
		return func(inner locker.Locker) locker.Locker {
			return waits(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) { return f(ctx, req, inner) }))
		}, err
	}
}

// early reports whether an attempt is one that a request with an owner makes before its turn.
func early(req locker.Request) bool { return req.NoWait && req.Owner == "" }

// anonymous is an attempt whose refusal does not name the holder.
func anonymous(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
	lock, err := l.Acquire(ctx, req)
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		held := *held
		held.Owner = ""
		err = &locker.OpError{Op: "acquire", Name: req.Name, Err: &held}
	}
	return lock, err
}

func refuse(req locker.Request) (*locker.Lock, error) {
	return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.ContentionError{Name: req.Name}}
}

func newReentrant(drv driver.Driver) (locker.Locker, error) {
	return reentrant.New(drv, reentrant.Config{AttemptTimeout: AttemptTimeout})
}

func TestMutantsThatWait(t *testing.T) {
	t.Parallel()
	mutants := []struct {
		name   string
		sound  func(retry.Config) (locker.Middleware, error) // nil: retry.New
		waits  func(retry.Config) (locker.Middleware, error)
		mutate func(*algorithm)
		caught []string
	}{
		{
			name: "a nested acquire that queues",
			waits: attempts(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
				if early(req) {
					return refuse(req)
				}
				return l.Acquire(ctx, req)
			}),
			caught: []string{"a nested acquire does not wait for the queue", "a nested acquire outlives a transient error"},
		},
		{
			name:  "an error taken for the answer whether an owner holds the lock",
			sound: attempts(anonymous),
			waits: attempts(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
				lock, err := anonymous(ctx, req, l)
				if early(req) && err != nil && !errors.Is(err, locker.ErrNotAcquired) && driver.Transient(err) {
					return refuse(req)
				}
				return lock, err
			}),
			caught: []string{"a nested acquire outlives a transient error"},
		},
		{
			name:   "NoWait and MaxWait that bound nothing",
			mutate: func(a *algorithm) { a.unbounded = true },
			caught: []string{"an acquire that does not wait is bounded"},
		},
		{
			name: "a MaxWait that bounds the pauses alone",
			waits: attempts(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
				return l.Acquire(context.WithoutCancel(ctx), req)
			}),
			caught: []string{"an acquire that does not wait is bounded"},
		},
		{
			name: "a command that was not sent taken for contention",
			waits: attempts(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
				lock, err := l.Acquire(ctx, req)
				if err != nil && ctx.Err() != nil {
					return refuse(req)
				}
				return lock, err
			}),
			caught: []string{"an acquire that does not wait is bounded"},
		},
	}
	var suspects []suspect
	for _, m := range mutants {
		sound := &Harness{Dial: plain, Can: Capabilities{Reentrant: true, Hash: true}, New: newReentrant, waits: m.sound}
		flawed := *sound
		if m.mutate != nil {
			alg := oneKey
			sound = alg.harness(Capabilities{})
			m.mutate(&alg)
			flawed = *alg.harness(Capabilities{})
		}
		flawed.waits = m.waits
		suspects = append(suspects, suspect{m.name, &flawed, sound, m.caught})
	}
	convict(t, suspects)
}

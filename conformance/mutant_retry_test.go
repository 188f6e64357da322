package conformance

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/callchain"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// waitsUnder makes middleware/retry with f in charge of its acquires.
func waitsUnder(f func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error)) func(retry.Config) (locker.Middleware, error) {
	return func(cfg retry.Config) (locker.Middleware, error) {
		waits, err := retry.New(cfg)
		return func(inner locker.Locker) locker.Locker {
			l := waits(inner)
			return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) { return f(ctx, l, req) })
		}, err
	}
}

// nested refuses a request if f accepts a hold of the name in its ctx.
func nested(f func(lease.Hold) bool) func(context.Context, locker.Locker, locker.Request) (*locker.Lock, error) {
	return func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
		for lock := range callchain.Locks[*locker.Lock](ctx, req.Name) {
			if f(lock.Hold()) {
				return nil, &locker.OpError{Op: "acquire", Name: req.Name, Err: &locker.ContentionError{Name: req.Name, Nested: true}}
			}
		}
		return l.Acquire(ctx, req)
	}
}

func TestMutantsOfMisuse(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.add("a call chain that waits for itself", &Harness{
		Dial: plain, waits: waitsUnder(func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
			return l.Acquire(locker.WithOwner(ctx, ""), req)
		}),
	}, sound, "a call chain does not wait for itself")
	m.add("a call chain that is stopped by a name", &Harness{
		Dial: plain, waits: waitsUnder(nested(func(h lease.Hold) bool { return h.Err() == nil })),
	}, sound, "only a hold of its own stops a call chain")
	m.add("a call chain that is stopped by a hold that has ended", &Harness{
		Dial: plain, waits: waitsUnder(nested(func(h lease.Hold) bool { return h.Err() != nil })),
	}, sound, "only a hold of its own stops a call chain")
	var mu sync.Mutex
	var table []*locker.Lock
	keeps := acquires(func(ctx context.Context, req locker.Request, inner locker.Locker) (*locker.Lock, error) {
		lock, err := inner.Acquire(ctx, req)
		mu.Lock()
		defer mu.Unlock()
		table = append(table, lock)
		return lock, err
	})
	m.add("middleware that keeps its Locks", &Harness{Dial: plain, Around: keeps}, sound, "a forgotten lock is found out")
	m.convict()
}

func TestMutantsWithPermits(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	m.add("waiters that hold one after the other", &Harness{Dial: plain, waits: inTurn}, sound,
		"waiters of a process hold permits together")
	m.add("a lock of as many permits as asked for", &Harness{
		Dial: plain, Around: corrects(func(req *locker.Request) { req.Permits = min(req.Permits, 1) }),
	}, sound, "a lock has one permit")
	m.convict()
}

// inTurn makes middleware/retry with one hold of its locks at a time.
func inTurn(cfg retry.Config) (locker.Middleware, error) {
	turn := make(chan struct{}, 1)
	return waitsUnder(func(ctx context.Context, l locker.Locker, req locker.Request) (*locker.Lock, error) {
		lock, err := l.Acquire(ctx, req)
		if err != nil {
			return nil, err
		}
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
			return leaseFunc(func(ctx context.Context, op lease.Op) (lease.Result, error) {
				if op.Kind == lease.OpRelease {
					<-turn
				}
				return inner.Do(ctx, op)
			})
		})
		return lock, nil
	})(cfg)
}

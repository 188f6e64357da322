package conformance

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

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

// inTurn makes middleware/retry whose locks are held one after the other.
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
			return leaseFunc(func(ctx context.Context, op lease.Op) (lease.Term, error) {
				if op.Kind == lease.OpRelease {
					<-turn
				}
				return inner.Do(ctx, op)
			})
		})
		return lock, nil
	})(cfg)
}

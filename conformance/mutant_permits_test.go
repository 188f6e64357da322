package conformance

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// The mutants are strategies/semaphore with other lines in its scripts.
func TestMutantsWithPermits(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range []struct {
		name          string
		sound, flawed string
		caught        []string
	}{
		{
			"a hold counts as one permit",
			"  lock.used = lock.used + wanted", "  lock.used = lock.used + 1",
			[]string{"permits are limited"},
		},
		{
			"one permit more than there are",
			"not again and free(lock) < wanted then", "not again and free(lock) + 1 < wanted then",
			[]string{"permits are limited"},
		},
		{
			"permits of the dead are never free",
			"  while lock.limit - used < wanted do", "  while false do",
			[]string{"permits return at the end of a lease"},
		},
		{
			"an acquire that is sent again counts again",
			"local again = lock and end_of(lock, ARGV[1])", "local again = false",
			[]string{"permits whose reply is lost count once"},
		},
		{
			"a release that is sent again counts again",
			"if till or #lock.dead > 0 then", "lock.used = till and lock.used or lock.used - permits_of(ARGV[1])\nif true then",
			[]string{"a release of permits whose reply is lost counts once"},
		},
		{
			"small requests pass a large one",
			"if not again and kept_for(queue, ARGV[8], id, true) then", "if false then",
			[]string{"a large request is not starved"},
		},
		{
			"a release wakes one waiter",
			"if unused > 0 then", "if false then",
			[]string{"a release wakes all who fit"},
		},
		{
			"any limit will do",
			"if lock.limit ~= limit and ARGV[11] ~= '1' and live_holds(lock) > 0 then", "if false then",
			[]string{"two limits are an error"},
		},
		{
			"a resume takes the permits again",
			"redis.call('ZREM', KEYS[1], ARGV[4])", "store((function() lock.used = lock.used + permits_of(ARGV[4]) return lock end)())",
			[]string{"a resumed hold keeps its permits"},
		},
		{
			"Inspect forgets the permits of a hold",
			"holds, 0, lock.limit, lock.used}", "holds, 0, lock.limit, holds}",
			[]string{"Inspect reports free permits"},
		},
		{
			"a release before MinHold that frees the permits",
			"elseif till then\n  lock.used", "end\nif till then\n  lock.used",
			[]string{"permits stay taken for MinHold"},
		},
		{
			"a release before MinHold that still counts as a hold",
			"holds - kept_holds(lock) - lock.kept", "holds",
			[]string{"permits stay taken for MinHold"},
		},
		{
			"all holders have one token",
			"  fence, last = next_fence(counter)\n  if not fence then", "  fence, last = next_fence(counter)\n  fence = lock and last or fence\n  if not fence then",
			[]string{"each hold of permits has a higher token"},
		},
	} {
		suspects = append(suspects, suspect{m.name, semaphoreWith(t, m.sound, m.flawed), semaphoreWith(t, "", ""), m.caught})
	}
	careless := func(inner locker.Locker) locker.Locker {
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			req.Permits = min(req.Permits, 1)
			return inner.Acquire(ctx, req)
		})
	}
	convict(t, append(suspects,
		suspect{
			"waiters that hold one after the other", &Harness{Dial: plain, waits: inTurn}, &Harness{Dial: plain},
			[]string{"waiters of a process hold permits together"},
		},
		suspect{
			"a lock of as many permits as asked for", &Harness{Dial: plain, Around: careless}, &Harness{Dial: plain},
			[]string{"a lock has one permit"},
		},
	))
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

// semaphoreWith is strategies/semaphore with flawed in place of sound in its scripts, one of which
// must have that.
func semaphoreWith(t *testing.T, sound, flawed string) *Harness {
	return &Harness{
		Dial: dialWith(t, sound, flawed),
		NewSemaphore: func(drv driver.Driver, permits int, bound Timeouts) (locker.Locker, error) {
			return semaphore.New(drv, semaphore.Config{Permits: permits, AttemptTimeout: bound.Attempt})
		},
	}
}

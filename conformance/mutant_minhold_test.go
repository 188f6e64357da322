//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// freesEarly releases without regard to MinHold.
func freesEarly(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
	op.KeepUntil = time.Time{}
	return l.Lease.Do(ctx, op)
}

// countsFromRelease keeps the name taken for MinHold after the release.
func countsFromRelease(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
	op.KeepUntil = time.Now().Add(l.req.MinHold)
	return l.Lease.Do(ctx, op)
}

// releasesLate sends the release when MinHold has passed.
func releasesLate(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
	if op.KeepUntil.IsZero() {
		return l.Lease.Do(ctx, op)
	}
	time.AfterFunc(time.Until(op.KeepUntil), func() { _, _ = l.Lease.Do(context.Background(), lease.Op{Kind: op.Kind}) })
	return lease.Result{}, nil
}

func TestMinHoldMutants(t *testing.T) {
	t.Parallel()
	m, ours := mutants{T: t}, Capabilities{MinHold: true}
	flaw := func(name string, around locker.Middleware, caught string) {
		m.add(name, &Harness{Dial: plain, Around: around}, &Harness{Dial: plain}, caught)
	}
	flaw("a release that frees the name", operating(freesEarly), "a release before MinHold keeps the name taken")
	flaw("a MinHold that counts from the release", operating(countsFromRelease), "MinHold counts from the acquire")
	flaw("a resume that forgets MinHold", corrects(func(req *locker.Request) {
		if g := req.Resume.Info(); g.Token != "" {
			g.MinHold = 0
			req.Resume = locker.NewLock(context.Background(), g, nil).Handle()
		}
	}), "a resumed hold keeps its MinHold")
	flaw("a release that the process delays", operating(releasesLate), "a minimum hold outlives its process")
	m.add("a refusal that does not say when MinHold ends", &Harness{
		Dial: plain, waits: attempts(refusing(func(held *locker.ContentionError) {
			if held.Released {
				held.Left, held.RetryAfter = time.Hour, time.Hour
			}
		})),
	}, &Harness{Dial: plain}, "a waiter acquires at the end of MinHold")
	of := func(
		open func(driver.Driver, Timeouts) (locker.Locker, error), can Capabilities, name string, around attempt, caught string,
	) {
		m.add(name, &Harness{Dial: plain, Can: can, New: open, Around: acquires(around)},
			&Harness{Dial: plain, Can: can, New: open}, caught)
	}
	of(newReentrant, Capabilities{MinHold: true, Reentrant: true, Hash: true}, "an owner that enters what it released",
		func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if held, ok := errors.AsType[*locker.ContentionError](err); ok && held.Released && held.Owner == req.Owner {
				if _, err := locker.Break(ctx, l, req.Name); err != nil {
					return nil, err
				}
				return l.Acquire(ctx, req)
			}
			return lock, err
		}, "a minimum hold keeps its owner out")
	of(newRWHash, Capabilities{MinHold: true, Shared: true, Hash: true}, "a minimum hold that is always exclusive",
		func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			state, err := locker.Inspect(ctx, l, req.Name)
			if err == nil && req.Mode == locker.Shared && state.Held && state.Holds == 0 {
				return refuse(req)
			}
			return l.Acquire(ctx, req)
		}, "the minimum hold of a reader keeps writers out")
	m.add("a quorum that frees the name", aroundRedlock(func(l locker.Locker, _ []locker.Locker) locker.Locker {
		return operating(freesEarly)(l)
	}), &Harness{Dial: plain}, "a quorum keeps the name taken for MinHold")

	algorithmic := func(name, caught string, mutate func(*algorithm)) {
		flawed := oneKey
		mutate(&flawed)
		m.add(name, flawed.harness(ours), oneKey.harness(ours), caught)
	}
	algorithmic("a lease that does not last for MinHold", "a lease lasts for MinHold", func(a *algorithm) { a.leaseIgnoresMinHold = true })
	algorithmic("a release that leaves its hold", "a minimum hold belongs to nobody",
		lua("redis.call('SET', KEYS[1], '~' .. ARGV[1], 'PX', ARGV[7])", "redis.call('PEXPIRE', KEYS[1], ARGV[7])"))
	algorithmic("a release that is sent once", "a release that keeps the name is resolved", func(a *algorithm) { a.onceOnly = true })
	algorithmic("a clean-up that keeps the name", "an acquire that was given up keeps no name", func(a *algorithm) { a.keepsInUndo = true })
	m.convict()
}

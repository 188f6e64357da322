//realtime:ok mutants run in bubbles

package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
)

func TestMutantsThatHandOver(t *testing.T) {
	t.Parallel()
	m, counting := mutants{T: t}, oneKey
	lua("mint(by_clock)", "mint(by_count)")(&counting)
	forgetful := counting
	forgetful.forgetsFences = true
	m.add("a hand-over whose fencing tokens are given again", forgetful.harness(Capabilities{}), counting.harness(Capabilities{}),
		"a hand-over is a hold of its own")
	sound := &Harness{Dial: plain}
	flaw := func(name string, flawed func(handover.Config) (locker.Middleware, error), caught string) {
		m.add(name, &Harness{Dial: plain, handsOver: flawed}, sound, caught)
	}
	flaw("a hand-over that forgets how much of the lease is left", wholeLeases, "a hand-over keeps the lease")
	flaw("a hand-over that asks the server nothing", unchecked, "Break ends hand-overs")
	flaw("a hand-over that keeps the first note", firstNotes, "a waiter for a hand-over learns the changed note")
	m.convict()
}

// wholeLeases hands over with the whole TTL.
func wholeLeases(cfg handover.Config) (locker.Middleware, error) {
	mw, err := handover.New(cfg)
	return func(l locker.Locker) locker.Locker {
		l = mw(l)
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			handed := false
			lock, err := l.Acquire(locktrace.With(ctx, &locktrace.Trace{Woken: func(_ context.Context, info locktrace.WokenInfo) {
				handed = info.By == locktrace.ByHandOver
			}}), req)
			if !handed || err != nil {
				return lock, err
			}
			g := lease.HoldInfo{Name: req.Name, TTL: lock.TTL(), Deadline: time.Now().Add(lock.TTL()), Fence: lock.Fence()}
			return locker.NewLock(ctx, g, leaseOf{lock}), nil
		})
	}, err
}

// leaseOf is the lease of a Lock around another.
type leaseOf struct{ lock *locker.Lock }

// Do implements lease.Lease.
func (l leaseOf) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	switch op.Kind {
	case lease.OpRenew:
		err := l.lock.Renew(ctx, op.TTL)
		return lease.Result{Deadline: l.lock.Deadline()}, err
	case lease.OpRelease:
		return lease.Result{}, l.lock.Release(ctx)
	}
	return lease.Result{}, errors.ErrUnsupported
}

// firstNotes changes notes behind the back of the hand-over.
func firstNotes(cfg handover.Config) (locker.Middleware, error) {
	mw, err := handover.New(cfg)
	return func(l locker.Locker) locker.Locker {
		l = mw(l)
		return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return secretNotes{inner} })
			}
			return lock, err
		})
	}, err
}

type secretNotes struct{ lease.Lease }

// Do implements lease.Lease.
func (l secretNotes) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if under, ok := l.Lease.(interface{ Unwrap() lease.Lease }); ok && op.Kind == lease.OpNote {
		return under.Unwrap().Do(ctx, op)
	}
	return l.Lease.Do(ctx, op)
}

// unchecked hands over locks without sending their renewals.
func unchecked(cfg handover.Config) (locker.Middleware, error) {
	mw, err := handover.New(cfg)
	return func(l locker.Locker) locker.Locker {
		return mw(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err == nil {
				lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return unrenewed{inner, lock.Hold()} })
			}
			return lock, err
		}))
	}, err
}

type unrenewed struct {
	lease.Lease
	hold lease.Hold
}

// Do implements lease.Lease.
func (l unrenewed) Do(ctx context.Context, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpRenew {
		return lease.Result{Deadline: l.hold.Deadline()}, nil
	}
	return l.Lease.Do(ctx, op)
}

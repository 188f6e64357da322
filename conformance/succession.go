package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
)

// Cases of consecutive calls without pauses, contention or faults.
var successionCases = []testCase{
	{
		name: "consecutive calls do not disturb one another", contract: 4, on: suite.WithoutSentinel,
		why: "the result of a call must not depend on background work that the one before it left",
		run: func(t *caseT) { t.succession(t.direct(), 4, true) },
	},
	{
		name: "consecutive calls of a quorum do not disturb one another", contract: 4, on: suite.OneAddress,
		quorum: true,
		why:    "the slowest node is still executing what the others have answered, and must not disturb the next call",
		run:    func(t *caseT) { t.succession(t.quorum(), 2, false) },
	},
}

// succession runs several holders with names of their own, to delay background work.
func (t *caseT) succession(l locker.Locker, names int, again bool) {
	t.Helper()
	const holders = 8
	errs := make(chan error, holders)
	for range holders {
		reqs := make([]locker.Request, names)
		for i := range reqs {
			reqs[i] = locker.Request{Name: t.Key(), TTL: long, Owner: "one", Fenced: i%2 > 0}
		}
		go func() {
			var err error
			for _, req := range reqs {
				err = errors.Join(err, follow(t.Ctx, l, req, t.h.Can))
				if again && err == nil {
					err = follow(t.Ctx, l, req, t.h.Can)
				}
			}
			errs <- err
		}()
	}
	for range holders {
		if err := <-errs; err != nil {
			t.Errorf("%v", err)
		}
	}
}

// follow acquires a free name and tries all operations of a holder, up to the first error. It
// leaves the name free.
func follow(ctx context.Context, l locker.Locker, req locker.Request, can Capabilities) error {
	lock, err := l.Acquire(ctx, req)
	if err != nil {
		return err
	}
	do := func(call func() error) {
		if err == nil {
			err = call()
		}
	}
	for _, ttl := range []int{0, 2, 0} {
		do(func() error { return lock.Renew(ctx, time.Duration(ttl)*long) })
		if can.Convert {
			do(func() error { return lock.Downgrade(ctx) })
			do(func() error { return lock.Renew(ctx, 0) })
			do(func() error { return lock.Upgrade(ctx) })
		}
		if can.Reentrant {
			do(func() error {
				inner, err := l.Acquire(ctx, req)
				if err == nil {
					err = inner.Release(ctx)
				}
				return err
			})
		}
		do(func() error {
			next, err := locker.Resume(ctx, l, lock.Handle())
			if err != nil {
				return err
			}
			before := lock.Fence()
			if lock = next; req.Fenced && next.Fence() <= before {
				return fmt.Errorf("the token was %d and is %d after Resume", before, next.Fence())
			}
			return nil
		})
	}
	if released := lock.Release(ctx); err == nil {
		err = released
	}
	return err
}

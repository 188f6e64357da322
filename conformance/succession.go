package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// The cases of calls that are made at once, one after the other, with nobody and nothing in the way.
var successionCases = []testCase{
	{
		name: "calls follow one another at once", contract: 4, on: everywhere,
		why: "no answer to a call may depend on what the one before it left to be done in the background",
		run: func(t *caseT) { t.succession(t.direct(), true) },
	},
	{
		name: "calls of a quorum follow one another at once", contract: 4, on: proxied, quorum: true,
		why: "the slowest node still does what the others have answered, and may not be in the way of the next call",
		run: func(t *caseT) { t.succession(t.quorum(), false) },
	},
}

// succession has several holders, so that what runs in the background comes late, use names of their own.
func (t *caseT) succession(l locker.Locker, again bool) {
	t.Helper()
	const holders, names = 8, 6
	errs := make(chan error, holders)
	for range holders {
		var reqs [names]locker.Request
		for i := range reqs {
			reqs[i] = locker.Request{Name: t.key(), TTL: long, Owner: "one", Fenced: i%2 > 0, NoWait: true}
		}
		go func() {
			var err error
			for _, req := range reqs {
				err = errors.Join(err, follow(t.ctx, l, req, t.h.Can))
				if again && err == nil {
					err = follow(t.ctx, l, req, t.h.Can)
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

// follow does to a free name all that one who holds it may do, and leaves it free.
func follow(ctx context.Context, l locker.Locker, req locker.Request, can Capabilities) error {
	lock, err := l.Acquire(ctx, req)
	if err != nil {
		return err
	}
	for _, ttl := range []int{0, 2, 0} {
		err = errors.Join(err, lock.Renew(ctx, time.Duration(ttl)*long))
		if can.Convert {
			err = errors.Join(err, lock.Downgrade(ctx), lock.Renew(ctx, 0), lock.Upgrade(ctx))
		}
		if can.Reentrant {
			inner, entered := l.Acquire(ctx, req)
			if entered == nil {
				entered = inner.Release(ctx)
			}
			err = errors.Join(err, entered)
		}
		next, resumed := locker.Resume(ctx, l, lock.Handle())
		if resumed != nil {
			return errors.Join(err, resumed, lock.Release(ctx))
		}
		if req.Fenced && next.Fence() <= lock.Fence() {
			err = errors.Join(err, fmt.Errorf("the token was %d and is %d after Resume", lock.Fence(), next.Fence()))
		}
		lock = next
	}
	return errors.Join(err, lock.Release(ctx))
}

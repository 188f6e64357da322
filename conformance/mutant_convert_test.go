package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// reacquire releases the hold, and acquires the lock in the other mode.
func reacquire(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
	if _, err := l.Lease.Do(ctx, lease.Op{Kind: lease.OpRelease}); err != nil {
		return lease.Result{}, err
	}
	req := l.req
	req.Mode, req.NoWait = op.Mode, true
	lock, err := l.locker.Acquire(ctx, req)
	if err != nil {
		return lease.Result{}, err
	}
	lock.Hold().Wrap(func(next lease.Lease) lease.Lease {
		l.Lease = next
		return next
	})
	return lease.Result{Deadline: lock.Deadline(), Fence: lock.Fence()}, nil
}

// awaitConversion converts when the other holders have left.
func awaitConversion(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
	for {
		result, err := l.Lease.Do(ctx, op)
		if !errors.Is(err, locker.ErrNotAcquired) || ctx.Err() != nil {
			return result, err
		}
		<-time.After(100 * time.Millisecond)
	}
}

// The mutants are strategies/rwhash with other conversions.
func TestMutantsThatConvert(t *testing.T) {
	t.Parallel()
	m, sound := mutants{T: t}, rwhashWith(t, "", "")
	flawed := func(convert operates) *Harness {
		h := rwhashWith(t, "", "")
		h.Around = operating(converting(convert))
		return h
	}
	m.add("a conversion that releases and acquires again", flawed(reacquire), sound, "a downgrade lets no writer in")
	m.add("an upgrade that waits for other readers", flawed(awaitConversion), sound,
		"two upgraders do not wait for each other", "only the sole reader upgrades")
	m.add("a conversion that renews", flawed(func(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
		if result, err := l.Lease.Do(ctx, op); err != nil {
			return result, err
		}
		return l.Lease.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: l.req.TTL})
	}), sound, "a conversion keeps the lease")
	m.convict()
}

// releasing releases instead of undoing.
func releasing(ctx context.Context, l *flawedLease, op lease.Op) (lease.Result, error) {
	if op.Kind == lease.OpUndo {
		op.Kind = lease.OpRelease
	}
	return l.Lease.Do(ctx, op)
}

// handleDeletes is single with a ReleaseHandle without comparison or resend.
type handleDeletes struct {
	locker.Locker
	drv driver.Driver
}

func (f handleDeletes) ReleaseHandle(ctx context.Context, h locker.Handle) error {
	_, err := f.drv.Eval(context.WithoutCancel(ctx), driver.NewScript(`return redis.call('DEL', KEYS[1])`), []string{h.Name()}, nil)
	return err
}

func TestResumeMutants(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	resumes := func(name string, around locker.Middleware, caught string) {
		m.add(name, &Harness{Dial: plain, Around: around}, sound, caught)
	}
	resumes("an undo that releases", operating(releasing), "an undone resume leaves the hold as it was")
	resumes("a cancelled resume left to itself",
		acquires(func(ctx context.Context, req locker.Request, l locker.Locker) (*locker.Lock, error) {
			lock, err := l.Acquire(context.WithoutCancel(ctx), req)
			if err == nil && ctx.Err() != nil && !req.Resume.IsZero() {
				return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
			}
			return lock, err
		}), "an abandoned resume is undone")
	resumes("a resume by the handle alone", corrects(func(req *locker.Request) {
		if !req.Resume.IsZero() {
			req.Name, req.Mode = req.Resume.Name(), req.Resume.Mode()
		}
	}), "a handle must fit its request")
	m.add("a release by handle that compares nothing and is sent once",
		around(newSingle, Capabilities{MinHold: true}, func(l locker.Locker, drv driver.Driver) locker.Locker {
			return handleDeletes{l, drv}
		}), sound, "a hold is released by its handle", "a release by handle whose reply is lost succeeds",
		"a release by handle keeps the name taken")
	m.convict()
}

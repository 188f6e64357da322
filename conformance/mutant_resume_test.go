package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// releasing releases where it should undo.
func releasing(ctx context.Context, l *flawedLease, op lease.Op) (lease.Term, error) {
	if op.Kind == lease.OpUndo {
		op.Kind = lease.OpRelease
	}
	return l.Lease.Do(ctx, op)
}

// handleDeletes is single with a ReleaseHandle that compares nothing and is sent once.
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

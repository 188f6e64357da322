package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// flawedResumes is single with a flaw in what follows a resume.
type flawedResumes struct {
	locker.Locker

	releases  bool // a resume is undone by releasing the hold
	abandons  bool // a cancelled resume is left to itself
	unchecked bool // a resume ignores the name and the mode of its request
}

func (f flawedResumes) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	if req.Resume.IsZero() {
		return f.Locker.Acquire(ctx, req)
	}
	if f.unchecked {
		req.Name, req.Mode = req.Resume.Name(), req.Resume.Mode()
	}
	send := ctx
	if f.abandons {
		send = context.WithoutCancel(ctx)
	}
	lock, err := f.Locker.Acquire(send, req)
	if err == nil && ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %w", locker.ErrUnknownOutcome, ctx.Err())
	}
	if err == nil && f.releases {
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return releasingLease{inner} })
	}
	return lock, err
}

type releasingLease struct{ lease.Lease }

func (l releasingLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
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

func TestHandleMutants(t *testing.T) {
	t.Parallel()
	convict(t, []suspect{{
		"a release by handle that compares nothing and is sent once",
		&Harness{Dial: plain, Can: Capabilities{MinHold: true}, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			l, err := newSingle(drv, bound)
			return handleDeletes{l, drv}, err
		}},
		&Harness{Dial: plain},
		[]string{"a hold is released by its handle", "a release by handle whose reply is lost succeeds", "a release by handle keeps the name taken"},
	}})
}

func TestResumeMutants(t *testing.T) {
	t.Parallel()
	harness := func(f flawedResumes) *Harness {
		return &Harness{Dial: plain, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
			l, err := newSingle(drv, bound)
			f.Locker = l
			return f, err
		}}
	}
	suspects := []suspect{
		{
			"an undo that releases", harness(flawedResumes{releases: true}), harness(flawedResumes{}),
			[]string{"an undone resume leaves the hold as it was"},
		},
		{
			"a cancelled resume left to itself", harness(flawedResumes{abandons: true}), harness(flawedResumes{}),
			[]string{"an abandoned resume is undone"},
		},
		{
			"a resume by the handle alone", harness(flawedResumes{unchecked: true}), harness(flawedResumes{}),
			[]string{"a handle must fit its request"},
		},
	}
	for _, m := range []struct {
		name          string
		sound, flawed string
		caught        []string
	}{
		{
			"a resume that keeps the token",
			"redis.call('SET', KEYS[1], ARGV[1], 'PX', string", "redis.call('PEXPIRE', KEYS[1], string",
			[]string{"resume takes a hold over", "one of many resumes wins", "resume takes a quorum's hold over"},
		},
		{
			"a resume of any hold", "if held ~= ARGV[1] and held ~= ARGV[4] then", "if held == '' then",
			[]string{"resume of a lost hold is refused"},
		},
		{
			"a resume that compares the beginning", "held ~= ARGV[4] then", "string.sub(held, 1, #ARGV[4]) ~= ARGV[4] then",
			[]string{"a resume compares the whole value"},
		},
		{
			"a resume that does not recognize its own value", "held ~= ARGV[1] and held ~= ARGV[4]", "held ~= ARGV[4]",
			[]string{"a resume whose reply is lost succeeds"},
		},
	} {
		suspects = append(suspects, suspect{m.name, scriptsWith(t, m.sound, m.flawed), scriptsWith(t, "", ""), m.caught})
	}
	convict(t, suspects)
}

package locker_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestDoAll(t *testing.T) {
	t.Parallel()
	type errs []error
	type work func(context.Context, *lockertest.Locker, *locker.Locks) error
	const backward = "+a +b +c -a -b -c"
	returns := func(err error) work {
		return func(context.Context, *lockertest.Locker, *locker.Locks) error { return err }
	}
	after := func(f func(l *lockertest.Locker)) work {
		return func(_ context.Context, l *lockertest.Locker, _ *locker.Locks) error { f(l); return nil }
	}
	releaseB := func(ctx context.Context, _ *lockertest.Locker, locks *locker.Locks) error {
		return locks.All()[1].Release(ctx)
	}
	type test struct {
		fn            work
		log           string
		want, wantNot errs
	}
	check.Each(t, map[string]test{
		"done":            {fn: returns(nil), log: backward},
		"failed":          {returns(errWork), backward, errs{errWork}, errs{locker.ErrNotHeld}},
		"one is lost":     {after(func(l *lockertest.Locker) { l.Expire("b") }), backward, errs{locker.ErrLost}, nil},
		"one is gone":     {after(func(l *lockertest.Locker) { l.Forget("a") }), backward, errs{locker.ErrLost}, nil},
		"a release fails": {after(func(l *lockertest.Locker) { l.FailRelease(io.EOF) }), "", errs{io.EOF}, errs{locker.ErrLost}},
		"released by fn": {
			fn:  func(ctx context.Context, _ *lockertest.Locker, locks *locker.Locks) error { return locks.Release(ctx) },
			log: backward,
		},
		"one is released by fn": {fn: releaseB, log: "+a +b +c -a -b -c"},
		"one is released by fn, another one is lost": {
			fn: func(ctx context.Context, l *lockertest.Locker, locks *locker.Locks) error {
				defer l.Expire("c")
				return releaseB(ctx, l, locks)
			},
			want: errs{locker.ErrLost}, log: "+a +b +c -a -b -c",
		},
	}, func(t *testing.T, tt test) {
		l := newJournal()
		err := locker.DoAll(t.Context(), l, named("c", "a", "b"), func(ctx context.Context, locks *locker.Locks) error {
			return tt.fn(ctx, l.Locker, locks)
		})
		check.Error(t, "DoAll", err, tt.want...)
		wantNotError(t, "DoAll", err, tt.wantNot...)
		if tt.log != "" {
			l.wantLog(t, tt.log)
		}
	})
}

func TestDoAllNamesTheLost(t *testing.T) {
	t.Parallel()
	l := newJournal()
	err := locker.DoAll(t.Context(), l, named("c", "a", "b"), func(context.Context, *locker.Locks) error {
		l.Expire("b")
		return nil
	})
	wantName(t, err, "release", "b")
	err = locker.DoAll(t.Context(), l, named("c", ""), func(context.Context, *locker.Locks) error { return nil })
	if err == nil || strings.Contains(err.Error(), "AcquireAll") {
		t.Errorf("DoAll: %v, want an error that does not name AcquireAll", err)
	}
}

// fn's ctx carries the owner of each lock for its name.
func TestDoAllOwners(t *testing.T) {
	t.Parallel()
	reqs := []locker.Request{{Name: "a", Owner: "x"}, {Name: "b", Owner: "y"}}
	err := locker.DoAll(t.Context(), lockertest.New(), reqs, func(ctx context.Context, _ *locker.Locks) error {
		a, _ := lease.OwnerFrom(ctx, "a")
		b, _ := lease.OwnerFrom(ctx, "b")
		if _, other := lease.OwnerFrom(ctx, "c"); a != "x" || b != "y" || other {
			t.Errorf("owners %q and %q, of another name: %v; want x and y, and none", a, b, other)
		}
		return nil
	})
	check.Error(t, "DoAll", err)
}

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestDoAll(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		fn      func(context.Context, *lockertest.Locker, *locker.Locks) error
		want    []error
		wantNot []error
		log     string
	}{
		{
			name: "done", fn: func(context.Context, *lockertest.Locker, *locker.Locks) error { return nil },
			log: "+a +b +c -c -b -a",
		},
		{
			name: "failed", fn: func(context.Context, *lockertest.Locker, *locker.Locks) error { return errWork },
			want: []error{errWork}, wantNot: []error{locker.ErrNotHeld}, log: "+a +b +c -c -b -a",
		},
		{
			name: "one is lost",
			fn: func(ctx context.Context, l *lockertest.Locker, _ *locker.Locks) error {
				l.Expire("b")
				<-ctx.Done()
				if lost, ok := errors.AsType[*locker.LostError](context.Cause(ctx)); !ok || lost.Name != "b" {
					return fmt.Errorf("cause %w", context.Cause(ctx))
				}
				return errWork
			},
			want: []error{errWork, locker.ErrLost}, log: "+a +b +c -c -b -a",
		},
		{
			name: "one is lost, unheeded",
			fn:   func(_ context.Context, l *lockertest.Locker, _ *locker.Locks) error { l.Expire("b"); return nil },
			want: []error{locker.ErrLost}, log: "+a +b +c -c -b -a",
		},
		{
			name: "one is gone",
			fn:   func(_ context.Context, l *lockertest.Locker, _ *locker.Locks) error { l.Forget("a"); return nil },
			want: []error{locker.ErrLost}, log: "+a +b +c -c -b -a",
		},
		{
			name: "a release fails",
			fn: func(_ context.Context, l *lockertest.Locker, _ *locker.Locks) error {
				l.FailRelease(io.EOF)
				return nil
			},
			want: []error{io.EOF}, wantNot: []error{locker.ErrLost},
		},
		{
			name: "released by fn",
			fn: func(ctx context.Context, _ *lockertest.Locker, locks *locker.Locks) error {
				return locks.Release(ctx)
			},
			log: "+a +b +c -c -b -a",
		},
		{
			name: "one is released by fn",
			fn: func(ctx context.Context, _ *lockertest.Locker, locks *locker.Locks) error {
				return locks.All()[1].Release(ctx)
			},
			log: "+a +b +c -a -c -b",
		},
		{
			name: "one is released by fn, another one is lost",
			fn: func(ctx context.Context, l *lockertest.Locker, locks *locker.Locks) error {
				defer l.Expire("c")
				return locks.All()[1].Release(ctx)
			},
			want: []error{locker.ErrLost}, log: "+a +b +c -a -c -b",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newJournal()
			err := locker.DoAll(t.Context(), l, named("c", "a", "b"), func(ctx context.Context, locks *locker.Locks) error {
				return tt.fn(ctx, l.Locker, locks)
			})
			wantError(t, "DoAll", err, tt.want...)
			wantNotError(t, "DoAll", err, tt.wantNot...)
			if tt.log != "" {
				l.wantLog(t, tt.log)
			}
		})
	}
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
	wantError(t, "DoAll", err)
}

func TestDoAllReleasesOnPanicAndGoexit(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic(errWork) }, "Goexit": runtime.Goexit} {
		l, gone := newJournal(), make(chan struct{})
		go func() {
			defer close(gone)
			defer func() { _ = recover() }()
			err := locker.DoAll(t.Context(), l, named("a", "b"), func(context.Context, *locker.Locks) error {
				end()
				return nil
			})
			t.Errorf("%s: DoAll returned %v", name, err)
		}()
		<-gone
		l.wantLog(t, "+a +b -b -a")
	}
}

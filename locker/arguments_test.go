package locker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// A call with a bad argument says which one is bad and of which operation, and asks for nothing.
func TestArguments(t *testing.T) {
	t.Parallel()
	l, req := lockertest.New(), locker.Request{Name: "a"}
	lock := locker.Must(l.Acquire(t.Context(), req))
	ctx, h, zero := t.Context(), lock.Handle(), locker.Handle{}
	var none context.Context
	work := func(context.Context, *locker.Lock) error { t.Error("the work runs"); return nil }
	try := func(ctx context.Context, l locker.Locker, fn func(context.Context, *locker.Lock) error) error {
		ran, err := locker.Try(ctx, l, req, fn)
		if ran {
			t.Error("Try says that the work ran")
		}
		return err
	}
	resume := func(ctx context.Context, l locker.Locker, h locker.Handle) error {
		lock, err := locker.Resume(ctx, l, h)
		if lock != nil {
			t.Errorf("%v beside %v", lock, err)
		}
		return err
	}
	end := func(ctx context.Context, l locker.Locker, name string) error {
		_, err := locker.Break(ctx, l, name)
		return err
	}
	inspect := func(ctx context.Context, l locker.Locker, name string) error {
		_, err := locker.Inspect(ctx, l, name)
		return err
	}
	watch := func(ctx context.Context, l locker.Locker, name string, interval time.Duration) (last error) {
		yields := 0
		for _, err := range locker.Watch(ctx, l, name, interval) {
			yields++
			last = err
		}
		if yields != 1 {
			t.Errorf("Watch yields %d times", yields)
		}
		return last
	}
	for _, tt := range []struct {
		op, text string
		err      error
	}{
		{"acquire", "Do ctx: nil", locker.Do(none, l, req, work)},
		{"acquire", "Do locker: nil", locker.Do(ctx, nil, req, work)},
		{"acquire", "Do function: nil", locker.Do(ctx, l, req, nil)},
		{"acquire", "Do ctx: nil", try(none, l, work)},
		{"acquire", "Do locker: nil", try(ctx, nil, work)},
		{"acquire", "Do function: nil", try(ctx, l, nil)},
		{"resume", "Resume ctx: nil", resume(none, l, h)},
		{"resume", "Resume locker: nil", resume(ctx, nil, h)},
		{"resume", "Resume handle: the zero Handle", resume(ctx, l, zero)},
		{"release", "ReleaseHandle ctx: nil", locker.ReleaseHandle(none, l, h)},
		{"release", "ReleaseHandle locker: nil", locker.ReleaseHandle(ctx, nil, h)},
		{"release", "ReleaseHandle handle: the zero Handle", locker.ReleaseHandle(ctx, l, zero)},
		{"break", "Break ctx: nil", end(none, l, "a")},
		{"break", "Break locker: nil", end(ctx, nil, "a")},
		{"break", "Request.Name", end(ctx, l, "")},
		{"inspect", "Inspect ctx: nil", inspect(none, l, "a")},
		{"inspect", "Inspect locker: nil", inspect(ctx, nil, "a")},
		{"inspect", "Request.Name", inspect(ctx, l, "")},
		{"watch", "Watch ctx: nil", watch(none, l, "a", 0)},
		{"watch", "Watch interval: -1ns", watch(ctx, l, "a", -1)},
		{"inspect", "Inspect locker: nil", watch(ctx, nil, "a", 0)},
		{"inspect", "Request.Name", watch(ctx, l, "", 0)},
		{"renew", "Lock.Renew ctx: nil", lock.Renew(none, 0)},
		{"downgrade", "Lock.Downgrade ctx: nil", lock.Downgrade(none)},
		{"upgrade", "Lock.Upgrade ctx: nil", lock.Upgrade(none)},
		{"note", "Lock.SetNote ctx: nil", lock.SetNote(none, "")},
		{"note", "Lock.SetNote note: 1025 bytes", lock.SetNote(ctx, strings.Repeat("x", locker.MaxNameLen+1))},
	} {
		wantInvalid(t, tt.text, tt.err)
		wantOp(t, tt.err, tt.op)
		if !strings.Contains(tt.err.Error(), ": invalid "+tt.text) {
			t.Errorf("%v; want %q in it", tt.err, tt.text)
		}
	}
	if calls := l.Calls(); len(calls) != 1 || lock.Err() != nil {
		t.Errorf("asked for %v, the lock's error is %v; want nothing done", calls, lock.Err())
	}
	for op, err := range map[string]error{
		"inspect": inspect(ctx, funcOf(l), "a"), "break": end(ctx, funcOf(l), "a"), "watch": errors.Unwrap(watch(ctx, funcOf(l), "a", 0)),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s of a Locker that cannot: %v", op, err)
		}
	}
}

// A Release without a ctx is terminal too.
func TestReleaseWithoutCtx(t *testing.T) {
	t.Parallel()
	l := &fakeLease{}
	lock := hold(t, l, time.Minute)
	err := lock.Release(nil) //nolint:staticcheck // nil on purpose
	wantInvalid(t, "Release", err)
	wantOp(t, err, "release")
	if asked := l.asked(); len(asked) != 1 || !errors.Is(lock.Err(), locker.ErrReleased) {
		t.Errorf("asked %v, Err %v; want one release", asked, lock.Err())
	}
}

// What a ctx that has ended stops.
func TestCancelledCtx(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := locker.Break(ctx, l, "a")
	for what, err := range map[string]error{"Break": err, "SetNote": lock.SetNote(ctx, "x")} {
		check.Error(t, what, err, context.Canceled)
	}
	l.FailRelease(locker.ErrUnknownOutcome)
	check.Error(t, "ReleaseHandle that fails", locker.ReleaseHandle(ctx, l, lock.Handle()), locker.ErrUnknownOutcome)
	check.Error(t, "ReleaseHandle", locker.ReleaseHandle(ctx, l, lock.Handle()))
}

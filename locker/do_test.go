package locker_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

var errWork = errors.New("work failed")

var released = []lease.Op{{Kind: lease.OpRelease}}

// Do combines the end of the work and the fate of the lock into its result.
func TestDo(t *testing.T) {
	t.Parallel()
	type errs []error
	errLost, errUnknown := locker.ErrLost, locker.ErrUnknownOutcome
	type work func(context.Context, *locker.Lock) error
	succeeds := func(context.Context, *locker.Lock) error { return nil }
	fails := func(context.Context, *locker.Lock) error { return errWork }
	// after is work that returns err once f has returned.
	after := func(f func(ctx context.Context, lock *locker.Lock), err error) work {
		return func(ctx context.Context, lock *locker.Lock) error { f(ctx, lock); return err }
	}
	waits := func(ctx context.Context, _ *locker.Lock) { <-ctx.Done() }
	outlasts := func(context.Context, *locker.Lock) { check.Advance(2 * time.Minute) }
	releases := func(ctx context.Context, lock *locker.Lock) { check.Error(t, "Release by fn", lock.Release(ctx)) }
	loses := func(_ context.Context, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }
	type test struct {
		fn            work
		cancelled     bool  // Do's ctx is cancelled while fn runs
		release       error // the answer to the release
		want, wantNot errs
	}
	check.EachInFakeTime(t, map[string]test{
		"done":              {fn: succeeds},
		"failed":            {fn: fails, want: errs{errWork}, wantNot: errs{locker.ErrNotHeld}},
		"cancelled":         {fn: after(waits, context.Canceled), cancelled: true, want: errs{context.Canceled}, wantNot: errs{locker.ErrNotHeld}},
		"past the Deadline": {fn: after(waits, nil), want: errs{errLost}, wantNot: errs{context.Canceled}},
		"lost, unheeded":    {fn: after(loses, nil), want: errs{errLost, io.EOF}},
		"expired, unheeded": {fn: after(outlasts, errWork), want: errs{errLost, errWork}},
		"expired, unknown":  {fn: after(outlasts, nil), release: errUnknown, want: errs{errLost, errUnknown}},
		"unknown":           {fn: succeeds, release: errUnknown, want: errs{errUnknown}, wantNot: errs{errLost, locker.ErrNotHeld}},
		"failed, unknown":   {fn: fails, release: errUnknown, want: errs{errWork, errUnknown}, wantNot: errs{errLost}},
		"release fails":     {fn: succeeds, release: io.EOF, want: errs{io.EOF}, wantNot: errs{errLost}},
		"found gone":        {fn: fails, release: locker.ErrNotHeld, want: errs{errLost, errWork}},
		"released by fn":    {fn: after(releases, nil)},
		"released, failed":  {fn: after(releases, errWork), want: errs{errWork}, wantNot: errs{locker.ErrNotHeld}},
		"lost, and says so": {
			fn: func(ctx context.Context, lock *locker.Lock) error {
				loses(ctx, lock)
				waits(ctx, lock)
				return errors.Join(errWork, context.Cause(ctx))
			},
			want: errs{errWork, errLost, io.EOF},
		},
		"lost, then released by fn": {
			fn: func(ctx context.Context, lock *locker.Lock) error {
				loses(ctx, lock)
				_ = lock.Release(ctx)
				return nil
			},
			want: errs{errLost},
		},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if tt.cancelled {
			time.AfterFunc(time.Second, cancel)
		}
		l := refusing(tt.release)
		err := locker.Do(ctx, grants(l), locker.Request{Name: "a"}, tt.fn)
		check.Error(t, "Do", err, tt.want...)
		wantNotError(t, "Do", err, tt.wantNot...)
		check.EqualSlices(t, "asked", l.asked(), released)
		if err != nil && strings.Count(err.Error(), "was lost") > 1 {
			t.Errorf("it tells the loss twice: %v", err)
		}
	})
}

// The error of the work, and that of the acquire, are returned as they are.
func TestDoKeepsErrors(t *testing.T) {
	t.Parallel()
	refused := &locker.OpError{Op: "acquire", Name: "a", Err: io.EOF}
	refuses := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) { return nil, refused })
	for want, l := range map[error]locker.Locker{errWork: lockertest.New(), refused: refuses} {
		got := locker.Do(t.Context(), l, locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error { return errWork })
		if got != want { //nolint:errorlint // the very error
			t.Errorf("Do: %#v, want %#v", got, want)
		}
	}
}

// inGoroutine runs f in a goroutine, and returns its panic: nil if it ends by Goexit.
func inGoroutine(f func()) (panicked any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
	}()
	<-done
	return panicked
}

func TestDoReleasesOnPanicAndGoexit(t *testing.T) {
	t.Parallel()
	for want, end := range map[any]func(){"the work's panic": func() { panic("the work's panic") }, nil: runtime.Goexit} {
		for _, answer := range []error{nil, io.EOF} {
			l, all := refusing(answer), newJournal()
			var work context.Context
			got := inGoroutine(func() {
				err := locker.Do(t.Context(), grants(l), locker.Request{Name: "a"}, func(ctx context.Context, _ *locker.Lock) error {
					work = ctx //nolint:fatcontext // checked below
					end()
					return nil
				})
				t.Errorf("Do returned %v", err)
			})
			if asked := l.asked(); got != want || !slices.Equal(asked, released) {
				t.Errorf("panicked with %v, asked %v; want %v and one release", got, asked, want)
			}
			check.Error(t, "the cause of fn's ctx", context.Cause(work), locker.ErrReleased)
			got = inGoroutine(func() {
				err := locker.DoAll(t.Context(), all, named("a", "b"), func(context.Context, *locker.Locks) error { end(); return nil })
				t.Errorf("DoAll returned %v", err)
			})
			check.Equal(t, "panic of DoAll", got, want)
			all.wantLog(t, "+a +b -a -b")
		}
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	busy := &locker.OpError{Op: "acquire", Name: "a", Err: &locker.ContentionError{Name: "a"}}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	type test struct {
		ctx     context.Context
		acquire error
		fn      error
		ran     bool
		want    []error
	}
	check.Each(t, map[string]test{
		"ran":                              {t.Context(), nil, nil, true, nil},
		"ran and failed":                   {t.Context(), nil, errWork, true, []error{errWork}},
		"ran and was refused another lock": {t.Context(), nil, busy, true, []error{locker.ErrNotAcquired}},
		"refused":                          {t.Context(), busy, nil, false, nil},
		"refused until MaxWait":            {t.Context(), errors.Join(busy, locker.ErrMaxWait), nil, false, nil},
		"refused until ctx ended":          {cancelled, errors.Join(busy, context.Canceled), nil, false, []error{locker.ErrNotAcquired, context.Canceled}},
		"an outage":                        {t.Context(), io.EOF, nil, false, []error{io.EOF}},
		"unknown":                          {t.Context(), locker.ErrUnknownOutcome, nil, false, []error{locker.ErrUnknownOutcome}},
	}, func(t *testing.T, tt test) {
		// Try does not wait, unless MaxWait is set.
		for req, noWait := range map[locker.Request]bool{
			{}: true, {NoWait: true}: true, {MaxWait: time.Second}: false, {MaxWait: time.Second, NoWait: true}: true,
		} {
			l := locker.Func(func(ctx context.Context, asked locker.Request) (*locker.Lock, error) {
				check.Equal(t, "NoWait", asked.NoWait, noWait)
				check.Equal(t, "MaxWait", asked.MaxWait, req.MaxWait)
				if tt.acquire != nil {
					return nil, tt.acquire
				}
				return grants(&fakeLease{}).Acquire(ctx, asked)
			})
			ran, err := locker.Try(tt.ctx, l, req, func(context.Context, *locker.Lock) error { return tt.fn })
			check.Equal(t, "ran", ran, tt.ran)
			check.Error(t, "Try", err, tt.want...)
		}
	})
}

func TestResume(t *testing.T) {
	t.Parallel()
	h := locker.NewHandle(lease.HoldInfo{Name: "a", Owner: "me", Token: secret, Mode: locker.Shared, TTL: time.Hour, Fence: 7})
	var got locker.Request
	l := locker.Func(func(_ context.Context, req locker.Request) (*locker.Lock, error) {
		got = req
		return nil, locker.ErrNotHeld
	})
	_, err := locker.Resume(t.Context(), l, h)
	check.Error(t, "Resume", err, locker.ErrNotHeld)
	if want := (locker.Request{Name: "a", Mode: locker.Shared, Fenced: true, Resume: h}); got != want || got.Validate() != nil {
		t.Errorf("asked %+v, want %+v", got, want)
	}
}

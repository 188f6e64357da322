package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

func TestLockOfNothing(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]*locker.Lock{"nil": nil, "zero": new(locker.Lock)}, func(t *testing.T, lock *locker.Lock) {
		if lock.Name() != "" || lock.Mode() != locker.Exclusive || lock.Owner() != "" || lock.TTL() != 0 || lock.Fence() != 0 ||
			!lock.Deadline().IsZero() || !lock.Handle().IsZero() {
			t.Errorf("%v has facts", lock)
		}
		for what, err := range map[string]error{
			"Err": lock.Err(), "Renew": lock.Renew(t.Context(), 0), "Downgrade": lock.Downgrade(t.Context()),
			"Upgrade": lock.Upgrade(t.Context()), "Release": lock.Release(t.Context()), "SetNote": lock.SetNote(t.Context(), "x"),
		} {
			check.Error(t, what, err, locker.ErrNotHeld)
			wantNotError(t, what, err, locker.ErrLost, locker.ErrReleased)
		}
		for what, err := range map[string]error{
			"Renew": lock.Renew(nil, 0), "Downgrade": lock.Downgrade(nil), "Upgrade": lock.Upgrade(nil), "Release": lock.Release(nil), //nolint:staticcheck // nil on purpose
			"Renew with a bad ttl": lock.Renew(t.Context(), -1),
		} {
			wantInvalid(t, what, err)
		}
		if !check.Closed(lock.Done()) {
			t.Error("Done is open")
		}
		var told []error
		stop := lock.AfterDone(func(err error) { told = append(told, err) })
		if len(told) != 1 || !errors.Is(told[0], locker.ErrNotHeld) || stop() {
			t.Errorf("AfterDone said %v, want ErrNotHeld, once, at once", told)
		}
		ctx, cancel := lock.Context(t.Context())
		defer cancel()
		check.Error(t, "the cause of its ctx", context.Cause(ctx), locker.ErrNotHeld)
		lock.DropMinHold() // does nothing
		h := lock.Hold()
		h.MarkLost(io.EOF)
		wantNotError(t, "Err after MarkLost", lock.Err(), locker.ErrLost)
		h.ExplainExpiry(io.EOF)
		h.Trace(t.Context(), (&recorder{}).trace())
		h.WrapContext(func(context.Context) context.Context { t.Error("called"); return nil })
		h.Wrap(func(inner lease.Lease) lease.Lease {
			if inner != nil {
				t.Errorf("its lease is %v", inner)
			}
			return inner
		})
		check.Error(t, "Renew of its Hold", h.Renew(t.Context()), locker.ErrNotHeld)
		if source := h.Source(); source != (locktrace.Source{}) || h.Forgotten() {
			t.Errorf("it comes from %+v, or was forgotten", source)
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	const ttl = time.Minute
	in := func(d time.Duration) func() lease.Result {
		return func() lease.Result { return lease.Result{Deadline: time.Now().Add(d)} }
	}
	never := func() lease.Result { return lease.Result{} }
	type test struct {
		result func() lease.Result
		err    error
		want   []error       // matched by Renew's error
		left   time.Duration // until Deadline, a second after the acquire; negative: for ever
		ended  []error       // matched by Err
		fenced int64
	}
	check.EachInFakeTime(t, map[string]test{
		"extended":         {result: in(ttl), left: ttl},
		"extended by more": {result: in(time.Hour), left: time.Hour},
		"never shortened":  {result: in(time.Second), left: ttl - time.Second},
		"in the past":      {result: in(-time.Hour), left: ttl - time.Second},
		"without end":      {result: never, left: -1},
		"unknown":          {result: in(ttl), err: locker.ErrUnknownOutcome, want: []error{locker.ErrUnknownOutcome}, left: ttl - time.Second},
		"failed":           {result: never, err: io.EOF, want: []error{io.EOF}, left: ttl - time.Second},
		"unsupported":      {result: never, err: errors.ErrUnsupported, want: []error{errors.ErrUnsupported}, left: ttl - time.Second},
		"cancelled":        {result: never, err: context.Canceled, want: []error{context.Canceled}, left: ttl - time.Second},
		"not held": {
			result: in(ttl), err: locker.ErrNotHeld, left: ttl - time.Second,
			want: []error{locker.ErrLost, locker.ErrNotHeld}, ended: []error{locker.ErrLost},
		},
		"lost, and why": {
			result: in(ttl), err: errors.Join(locker.ErrLost, io.EOF), left: ttl - time.Second,
			want: []error{locker.ErrLost, io.EOF}, ended: []error{locker.ErrLost, io.EOF},
		},
		"not held, and why": {
			result: in(ttl), err: errors.Join(locker.ErrNotHeld, io.EOF), left: ttl - time.Second,
			want: []error{locker.ErrLost, io.EOF}, ended: []error{locker.ErrLost, io.EOF},
		},
		"fence raised":        {result: func() lease.Result { return lease.Result{Fence: 9} }, left: -1, fenced: 9},
		"fence never lowered": {result: func() lease.Result { return lease.Result{Fence: 2} }, left: -1, fenced: 5},
	}, func(t *testing.T, tt test) {
		type key struct{}
		l := &fakeLease{answer: func(ctx context.Context, _ lease.Op) (lease.Result, error) {
			if ctx.Value(key{}) != "v" {
				t.Error("the lease was not asked with the caller's ctx")
			}
			return tt.result(), tt.err
		}}
		lock := locker.NewLock(t.Context(), lease.HoldInfo{
			Name: "a", Token: secret, TTL: ttl, Deadline: time.Now().Add(ttl), Fence: min(tt.fenced, 5),
		}, l)
		check.Advance(time.Second)
		err := lock.Renew(context.WithValue(t.Context(), key{}, "v"), 0)
		check.Error(t, "Renew", err, tt.want...)
		if err != nil {
			wantOp(t, err, "renew")
		}
		check.EqualSlices(t, "asked", l.asked(), []lease.Op{{Kind: lease.OpRenew, TTL: ttl}})
		if left := time.Until(lock.Deadline()); left != tt.left && (tt.left >= 0 || !lock.Deadline().IsZero()) {
			t.Errorf("%v left, want %v", left, tt.left)
		}
		check.Error(t, "Err", lock.Err(), tt.ended...)
		if check.Closed(lock.Done()) != (tt.ended != nil) {
			t.Error("Done and Err disagree")
		}
		check.Equal(t, "fence", lock.Fence(), tt.fenced)
		check.Equal(t, "TTL", lock.TTL(), ttl)
	})
}

// After the end nothing is sent, and nothing brings the lock back.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	type test struct {
		end  func(*testing.T, *locker.Lock)
		want error
	}
	check.EachInFakeTime(t, map[string]test{
		"released":          {func(t *testing.T, lock *locker.Lock) { check.Error(t, "Release", lock.Release(t.Context())) }, locker.ErrReleased},
		"marked lost":       {func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }, locker.ErrLost},
		"past the Deadline": {func(*testing.T, *locker.Lock) { check.Advance(time.Minute) }, locker.ErrLost},
	}, func(t *testing.T, tt test) {
		l := &fakeLease{}
		lock := hold(t, l, time.Minute)
		tt.end(t, lock)
		sent := len(l.asked())
		for range 2 {
			for what, err := range map[string]error{
				"renew": lock.Renew(t.Context(), time.Hour), "downgrade": lock.Downgrade(t.Context()), "upgrade": lock.Upgrade(t.Context()),
				"note": lock.SetNote(t.Context(), "x"),
			} {
				check.Error(t, what, err, tt.want, locker.ErrNotHeld)
				wantOp(t, err, what)
			}
		}
		lock.Hold().MarkLost(errors.New("another cause"))
		check.Error(t, "Err", lock.Err(), tt.want)
		if len(l.asked()) != sent || !check.Closed(lock.Done()) {
			t.Errorf("sent %v after the end; Done closed: %v", l.asked()[sent:], check.Closed(lock.Done()))
		}
	})
}

// An answer after the end changes nothing, be it good or bad.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	good := lease.Result{Deadline: time.Now().Add(1000 * time.Hour), Fence: 9}
	ops := map[string]func(context.Context, *locker.Lock) error{
		"renew":     func(ctx context.Context, lock *locker.Lock) error { return lock.Renew(ctx, time.Hour) },
		"downgrade": func(ctx context.Context, lock *locker.Lock) error { return lock.Downgrade(ctx) },
	}
	ends := map[string]struct {
		end    func(*testing.T, *locker.Lock)
		want   error
		unseen bool // the lock is not used before the answer comes
	}{
		"deadline": {func(*testing.T, *locker.Lock) { check.Advance(time.Minute) }, locker.ErrLost, false},
		"unseen":   {func(*testing.T, *locker.Lock) { check.Advance(time.Minute) }, locker.ErrLost, true},
		"loss":     {func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }, locker.ErrLost, false},
		"release":  {func(t *testing.T, lock *locker.Lock) { go func() { _ = lock.Release(t.Context()) }() }, locker.ErrReleased, false},
	}
	for op, run := range ops {
		for endName, end := range ends {
			for answerName, answer := range map[string]error{"yes": nil, "not held": locker.ErrNotHeld, "unknown": locker.ErrUnknownOutcome} {
				t.Run(op+", "+endName+", "+answerName, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						free := make(chan struct{})
						lock := hold(t, silent(free, good, answer), time.Minute)
						deadline := lock.Deadline()
						got := make(chan error, 1)
						go func() { got <- run(t.Context(), lock) }()
						synctest.Wait()
						end.end(t, lock)
						synctest.Wait()
						if !end.unseen && !check.Closed(lock.Done()) {
							t.Fatal("Done waits for the answer")
						}
						close(free)
						err := <-got
						synctest.Wait()
						check.Error(t, op, err, end.want)
						wantOp(t, err, op)
						check.Error(t, "Err", lock.Err(), end.want)
						if !check.Closed(lock.Done()) || !lock.Deadline().Equal(deadline) || lock.Mode() != locker.Exclusive || lock.Fence() != 0 {
							t.Errorf("the late answer changed it: %v, until %v", lock, lock.Deadline())
						}
					})
				})
			}
		}
	}
}

func TestWrapLease(t *testing.T) {
	t.Parallel()
	inner := &fakeLease{}
	lock := hold(t, inner, time.Minute)
	var seen []string
	for _, name := range []string{"inner", "outer"} {
		lock.Hold().Wrap(func(next lease.Lease) lease.Lease {
			_, _, _ = lock.Owner(), lock.Deadline(), lock.Err() // a wrapper may use the lock
			return leaseFunc(func(ctx context.Context, op lease.Op) (lease.Result, error) {
				seen = append(seen, name)
				return next.Do(ctx, op)
			})
		})
	}
	check.Error(t, "Renew", lock.Renew(t.Context(), 0))
	check.Error(t, "Release", lock.Release(t.Context()))
	if want := []string{"outer", "inner", "outer", "inner"}; !slices.Equal(seen, want) || len(inner.asked()) != 2 {
		t.Errorf("through %v, asked %v; want the last wrapper first", seen, inner.asked())
	}
}

type leaseFunc func(context.Context, lease.Op) (lease.Result, error)

func (f leaseFunc) Do(ctx context.Context, op lease.Op) (lease.Result, error) { return f(ctx, op) }

func TestConversionsOneAtATime(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		now, most := 0, 0 // conversions under way
		l := &fakeLease{answer: func(context.Context, lease.Op) (lease.Result, error) {
			now++
			most = max(most, now)
			<-time.After(time.Second)
			now--
			return lease.Result{}, nil
		}}
		lock := hold(t, l, time.Minute)
		start := time.Now()
		results := make(chan error)
		go func() { results <- lock.Downgrade(t.Context()) }()
		synctest.Wait()
		go func() { results <- lock.Upgrade(t.Context()) }()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		err := lock.Downgrade(ctx)
		check.Error(t, "a conversion behind another", err, context.DeadlineExceeded)
		wantOp(t, err, "downgrade")
		check.Took(t, "a conversion whose ctx ended", start, time.Millisecond)
		for range 2 {
			check.Error(t, "a conversion", <-results)
		}
		if got := time.Since(start); got != 2*time.Second || most != 1 || lock.Mode() != locker.Exclusive {
			t.Errorf("two conversions took %v, %d at once, and left the Lock %v", got, most, lock.Mode())
		}
	})
}

// After an unanswered downgrade others may share the lock, whatever its outcome.
func TestModeAfterConversions(t *testing.T) {
	t.Parallel()
	unknown := fmt.Errorf("cut: %w", locker.ErrUnknownOutcome)
	type test struct {
		to    locker.Mode
		fails error
		want  locker.Mode
	}
	check.Each(t, map[string]test{
		"downgrade of unknown outcome":    {locker.Shared, unknown, locker.Shared},
		"downgrade that was not executed": {locker.Shared, errors.New("connection refused"), locker.Exclusive},
		"upgrade of unknown outcome":      {locker.Exclusive, unknown, locker.Shared},
		"refused upgrade":                 {locker.Exclusive, &locker.ContentionError{Name: "a"}, locker.Shared},
		"upgrade":                         {locker.Exclusive, nil, locker.Exclusive},
	}, func(t *testing.T, tt test) {
		l := &fakeLease{}
		lock, asked := hold(t, l, time.Minute), []lease.Op{{Kind: lease.OpConvert, Mode: locker.Shared}}
		convert := lock.Downgrade
		if tt.to == locker.Exclusive {
			check.Error(t, "downgrade", lock.Downgrade(t.Context()))
			convert, asked = lock.Upgrade, append(asked, lease.Op{Kind: lease.OpConvert, Mode: locker.Exclusive})
		}
		l.answer = func(context.Context, lease.Op) (lease.Result, error) { return lease.Result{}, tt.fails }
		check.Is(t, convert(t.Context()), tt.fails)
		if lock.Mode() != tt.want || lock.Err() != nil || !slices.Equal(l.asked(), asked) {
			t.Errorf("%v after it, asked %v; want it held and %v", lock, l.asked(), tt.want)
		}
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()
	lost := func(lock *locker.Lock) { lock.Hold().MarkLost(io.ErrClosedPipe) }
	expired := func(*locker.Lock) { check.Advance(time.Minute) }
	type test struct {
		before  func(*locker.Lock)
		answer  error
		want    []error
		wantNot []error
		ended   error
		text    string
	}
	check.EachInFakeTime(t, map[string]test{
		"held, done":          {nil, nil, nil, nil, locker.ErrReleased, ""},
		"held, gone":          {nil, locker.ErrNotHeld, []error{locker.ErrLost}, []error{locker.ErrReleased}, locker.ErrReleased, ""},
		"held, lost, and why": {nil, errors.Join(locker.ErrLost, io.EOF), []error{locker.ErrLost, io.EOF}, nil, locker.ErrReleased, ""},
		"held, unknown":       {nil, locker.ErrUnknownOutcome, []error{locker.ErrUnknownOutcome}, []error{locker.ErrLost, locker.ErrNotHeld}, locker.ErrReleased, ""},
		"held, failed":        {nil, io.EOF, []error{io.EOF}, []error{locker.ErrLost}, locker.ErrReleased, ""},
		"lost, done":          {lost, nil, []error{locker.ErrLost, io.ErrClosedPipe}, nil, locker.ErrLost, ""},
		"lost, gone":          {lost, locker.ErrNotHeld, []error{locker.ErrLost, io.ErrClosedPipe}, nil, locker.ErrLost, ""},
		"lost, unknown":       {lost, locker.ErrUnknownOutcome, []error{locker.ErrLost, locker.ErrUnknownOutcome}, nil, locker.ErrLost, ""},
		"lost, failed": {
			lost, io.EOF, []error{locker.ErrLost, io.EOF, io.ErrClosedPipe}, nil, locker.ErrLost,
			`holdfast: release "a": holdfast: lock "a" was lost: ` + io.ErrClosedPipe.Error() + "; the release of what may be left failed: EOF",
		},
		"expired, done":   {expired, nil, []error{locker.ErrLost}, nil, locker.ErrLost, ""},
		"expired, gone":   {expired, locker.ErrNotHeld, []error{locker.ErrLost}, nil, locker.ErrLost, ""},
		"expired, failed": {expired, io.EOF, []error{locker.ErrLost, io.EOF}, nil, locker.ErrLost, ""},
	}, func(t *testing.T, tt test) {
		l := refusing(tt.answer)
		lock := hold(t, l, time.Minute)
		if tt.before != nil {
			tt.before(lock)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // does not stop the release
		err := lock.Release(ctx)
		check.Error(t, "Release", err, tt.want...)
		wantNotError(t, "Release", err, tt.wantNot...)
		if err != nil {
			wantOp(t, err, "release")
		}
		if tt.text != "" {
			check.Equal(t, "Release", err.Error(), tt.text)
		}
		again := lock.Release(t.Context())
		check.Error(t, "second Release", again, locker.ErrReleased)
		wantOp(t, again, "release")
		check.EqualSlices(t, "asked", l.asked(), []lease.Op{{Kind: lease.OpRelease}})
		check.Error(t, "Err", lock.Err(), tt.ended)
		if !check.Closed(lock.Done()) {
			t.Error("Done is open")
		}
	})
}

// A release carries the end of MinHold, counted from the acquire.
func TestMinHoldOfRelease(t *testing.T) {
	t.Parallel()
	const minHold = 10 * time.Second
	type test struct {
		minHold time.Duration
		work    time.Duration
		keeps   bool
		drop    bool
	}
	check.EachInFakeTime(t, map[string]test{
		"none":             {},
		"none, dropped":    {drop: true},
		"at once":          {minHold: minHold, keeps: true},
		"at once, dropped": {minHold: minHold, drop: true},
		"later":            {minHold: minHold, work: minHold - 1, keeps: true},
		"at the end":       {minHold: minHold, work: minHold},
		"after the end":    {minHold: minHold, work: 2 * minHold},
	}, func(t *testing.T, tt test) {
		l := &fakeLease{}
		var traced time.Time
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Released: func(_ context.Context, info locktrace.ReleasedInfo) {
			traced = info.KeepUntil
		}})
		g := lease.HoldInfo{Name: "a", Token: secret, TTL: time.Minute, Deadline: time.Now().Add(time.Minute), MinHold: tt.minHold}
		lock := locker.NewLock(ctx, g, l)
		var want time.Time
		if tt.keeps {
			want = time.Now().Add(minHold)
		}
		time.Sleep(tt.work) //nolint:forbidigo // fake time
		rest := (max(tt.minHold-tt.work, 0) + time.Millisecond - 1).Truncate(time.Millisecond)
		check.Equal(t, "MinHold of the Handle", lock.Handle().Info().MinHold, rest)
		if tt.drop {
			lock.DropMinHold()
		}
		check.Error(t, "Release", lock.Release(t.Context()))
		ops := l.asked()
		if got := ops[len(ops)-1].KeepUntil; !got.Equal(want) || !traced.Equal(want) {
			t.Errorf("the release keeps the name until %v, traced as %v, want %v", got, traced, want)
		}
	})
}

// If another name fails, AcquireAll releases its locks without MinHold: its caller never held them.
func TestAcquireAllThatFailsKeepsNoName(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	l.Hold(locker.Request{Name: "b"})
	reqs := []locker.Request{{Name: "a", MinHold: time.Hour}, {Name: "b", NoWait: true}}
	if _, err := locker.AcquireAll(t.Context(), l, reqs); !errors.Is(err, locker.ErrNotAcquired) {
		t.Fatal(err)
	}
	l.Forget("b")
	check.Error(t, "Release", locker.Must(locker.AcquireAll(t.Context(), l, reqs)).Release(t.Context()))
	if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); !errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("the name is free before MinHold: %v", err)
	}
}

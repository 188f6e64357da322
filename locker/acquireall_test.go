package locker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Two requests for one name are one request that grants both.
func TestAcquireAllMerges(t *testing.T) {
	t.Parallel()
	const sh = locker.Shared
	type test struct{ a, b, want locker.Request }
	check.Each(t, map[string]test{
		"nothing":               {locker.Request{}, locker.Request{}, locker.Request{}},
		"shared and exclusive":  {locker.Request{Mode: sh}, locker.Request{}, locker.Request{}},
		"shared twice":          {locker.Request{Mode: sh}, locker.Request{Mode: sh}, locker.Request{Mode: sh}},
		"one is fenced":         {locker.Request{}, locker.Request{Fenced: true}, locker.Request{Fenced: true}},
		"TTLs":                  {locker.Request{TTL: time.Second}, locker.Request{TTL: time.Minute}, locker.Request{TTL: time.Minute}},
		"a TTL and none":        {locker.Request{TTL: time.Second}, locker.Request{}, locker.Request{TTL: time.Second}},
		"a MinHold and a TTL":   {locker.Request{MinHold: time.Hour}, locker.Request{TTL: time.Minute}, locker.Request{MinHold: time.Hour, TTL: time.Hour}},
		"an owner and none":     {locker.Request{}, locker.Request{Owner: "me"}, locker.Request{Owner: "me"}},
		"one owner":             {locker.Request{Owner: "me"}, locker.Request{Owner: "me"}, locker.Request{Owner: "me"}},
		"notes":                 {locker.Request{Note: "1"}, locker.Request{Note: "2"}, locker.Request{Note: "1"}},
		"a note and none":       {locker.Request{}, locker.Request{Note: "2"}, locker.Request{Note: "2"}},
		"one permit by default": {locker.Request{Permits: 1}, locker.Request{}, locker.Request{Permits: 1}},
		"one does not wait":     {locker.Request{}, locker.Request{NoWait: true}, locker.Request{NoWait: true}},
	}, func(t *testing.T, tt test) {
		l := newJournal()
		tt.a.Name, tt.b.Name, tt.want.Name = "a", "a", "a"
		locks, err := locker.AcquireAll(t.Context(), l, []locker.Request{tt.a, tt.b})
		check.Error(t, "AcquireAll", err)
		if len(l.reqs) != 1 || l.reqs[0] != tt.want {
			t.Errorf("asked for %+v, want %+v once", l.reqs, tt.want)
		}
		check.Error(t, "Release", locks.Release(t.Context()))
	})
}

// Each request gets its own lock, also if middleware gives the locks other names.
func TestAcquireAllUnderOtherNames(t *testing.T) {
	t.Parallel()
	server := lockertest.New()
	l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		req.Name = "m:" + req.Name
		return server.Acquire(ctx, req)
	})
	names := []string{"z", "a", "b", "a"}
	reqs := make([]locker.Request, len(names))
	for i, name := range names {
		reqs[i].Name = name
	}
	locks, err := locker.AcquireAll(t.Context(), l, reqs)
	check.Must(t, err)
	for i, lock := range locks.All() {
		check.Equal(t, "the lock's name", lock.Name(), "m:"+names[i])
	}
	check.OK(t, locks.Release(t.Context()))
}

func TestAcquireAllRefuses(t *testing.T) {
	t.Parallel()
	var many []locker.Request
	for i := range locker.MaxNames {
		many = append(many, locker.Request{Name: fmt.Sprint("n", i)}, locker.Request{Name: fmt.Sprint("n", i)})
	}
	h := locker.NewHandle(lease.HoldInfo{Name: "b", Token: secret})
	l := newJournal()
	tests := []struct {
		name string
		ctx  context.Context
		l    locker.Locker
		reqs []locker.Request
		of   string // the name in the error
		text string
	}{
		{"no ctx", nil, l, named("a"), "a", "invalid AcquireAll ctx"},
		{"no locker", t.Context(), nil, named("a"), "a", "invalid AcquireAll locker: nil"},
		{"no requests", t.Context(), l, nil, "", "invalid AcquireAll requests: none; allowed: 1 to 64 names"},
		{"too many", t.Context(), l, append(many, locker.Request{Name: "one more"}), "", "65 names; allowed: 1 to 64 names"},
		{"an invalid one", t.Context(), l, named("a", ""), "", "Request.Name"},
		{"a resume", t.Context(), l, []locker.Request{{Name: "a"}, {Name: "b", Resume: h}}, "b", "Request.Resume"},
		{"two owners", t.Context(), l, []locker.Request{{Name: "a", Owner: "x"}, {Name: "a", Owner: "y"}}, "a", "Request.Owner: two for one name; allowed: one owner for each name"},
		{"other permits", t.Context(), l, []locker.Request{{Name: "a"}, {Name: "a", Permits: 2}}, "a", "Request.Permits: 1 and 2 for one name"},
	}
	for _, tt := range tests {
		locks, err := locker.AcquireAll(tt.ctx, tt.l, tt.reqs)
		if locks != nil {
			t.Errorf("%s: Locks beside %v", tt.name, err)
		}
		wantInvalid(t, tt.name, err)
		wantName(t, err, "acquire", tt.of)
		if !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v; want %q in it", tt.name, err, tt.text)
		}
	}
	wantInvalid(t, "DoAll without a function", locker.DoAll(t.Context(), l, named("a"), nil))
	err := locker.DoAll(t.Context(), l, nil, func(context.Context, *locker.Locks) error { return nil })
	check.Equal(t, "DoAll", err.Error(), `holdfast: acquire "": invalid DoAll requests: none; allowed: 1 to 64 names`)
	l.wantLog(t, "")

	locks, err := locker.AcquireAll(t.Context(), l, many)
	check.Error(t, "AcquireAll of as many as there may be", err)
	check.Error(t, "Release", locks.Release(t.Context()))
}

// slowly waits for d of fake time, or until ctx or MaxWait ends.
func slowly(d time.Duration) func(context.Context, locker.Request) error {
	return func(ctx context.Context, req locker.Request) error {
		if req.MaxWait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, req.MaxWait, locker.ErrMaxWait)
			defer cancel()
		}
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", &locker.ContentionError{Name: req.Name}, context.Cause(ctx))
		}
	}
}

// If one lock is refused, or lost meanwhile, the others are released. The shortest MaxWait bounds
// the whole call, and a loss ends it. The error reports a possible leftover rather than a refusal.
func TestAcquireAllOrNone(t *testing.T) {
	t.Parallel()
	type errs []error
	type before func(ctx context.Context, l *journal, cancel func(), req locker.Request) error
	// waiting is f for the waiting acquires. Those of the first try are refused.
	waiting := func(f before) before {
		return func(ctx context.Context, l *journal, cancel func(), req locker.Request) error {
			if req.NoWait {
				return &locker.ContentionError{Name: req.Name}
			}
			return f(ctx, l, cancel, req)
		}
	}
	// ofB is f for the acquires of b alone.
	ofB := func(f before) before {
		return func(ctx context.Context, l *journal, cancel func(), req locker.Request) error {
			if req.Name != "b" {
				return nil
			}
			return f(ctx, l, cancel, req)
		}
	}
	// lost ends with err once ctx has ended: when a is lost, after a second.
	lost := func(err error) before {
		return func(ctx context.Context, _ *journal, _ func(), _ locker.Request) error {
			<-ctx.Done()
			return err
		}
	}
	slow := func(d time.Duration) before {
		return func(ctx context.Context, _ *journal, _ func(), req locker.Request) error { return slowly(d)(ctx, req) }
	}
	fails := func(err error) before {
		return ofB(func(context.Context, *journal, func(), locker.Request) error { return err })
	}
	// tries answers the first try of each name by errs, and the waiting acquires with then.
	tries := func(errs map[string]error, then error) before {
		return func(_ context.Context, l *journal, _ func(), req locker.Request) error {
			if !req.NoWait {
				return then
			}
			return errs[req.Name]
		}
	}
	bounded := []locker.Request{{Name: "c", MaxWait: time.Hour}, {Name: "a"}, {Name: "b", MaxWait: time.Second}}
	ends := []locker.Request{{Name: "a", TTL: time.Second}, {Name: "b"}}
	once := []locker.Request{{Name: "a"}, {Name: "b", NoWait: true}, {Name: "c"}}
	refused, unknown, permanent := &locker.ContentionError{Name: "b", Owner: "other"}, locker.ErrUnknownOutcome, driver.Permanent(io.EOF)
	type test struct {
		reqs          []locker.Request
		before        before // each acquire
		of            string // the name in the error
		took          time.Duration
		log           string
		want, wantNot errs
		first         bool // the error is of the first try of b
	}
	check.EachInFakeTime(t, map[string]test{
		"an error that may pass":      {named("c", "b", "a"), fails(io.EOF), "b", 0, "+a +c -a -c", errs{io.EOF}, nil, false},
		"a permanent error":           {named("c", "b", "a"), fails(permanent), "b", 0, "+a +c -a -c", errs{io.EOF}, nil, false},
		"MaxWait in the first try":    {bounded, ofB(slow(time.Hour)), "b", time.Second, "+a +c -a -c", errs{locker.ErrMaxWait}, nil, false},
		"MaxWait in the third":        {bounded, waiting(slow(400 * time.Millisecond)), "c", time.Second, "+a +b -a -b", errs{locker.ErrMaxWait}, nil, false},
		"MaxWait before the third":    {bounded, waiting(slow(500 * time.Millisecond)), "c", time.Second, "+a +b -a -b", errs{locker.ErrMaxWait}, nil, false},
		"MaxWait in the first":        {bounded, waiting(slow(time.Hour)), "a", time.Second, "", errs{locker.ErrMaxWait}, nil, false},
		"lost in the first try":       {ends, ofB(lost(refused)), "a", time.Second, "+a -a", errs{locker.ErrLost}, errs{locker.ErrNotAcquired, context.Canceled}, false},
		"lost":                        {ends, ofB(waiting(lost(refused))), "a", time.Second, "+a -a", errs{locker.ErrLost}, errs{locker.ErrNotAcquired, context.Canceled}, false},
		"lost, the next unknown":      {ends, ofB(waiting(lost(locker.ErrUnknownOutcome))), "a", time.Second, "+a -a", errs{locker.ErrLost, locker.ErrUnknownOutcome}, nil, false},
		"lost, the first try unknown": {ends, ofB(lost(locker.ErrUnknownOutcome)), "a", time.Second, "+a -a", errs{locker.ErrLost, locker.ErrUnknownOutcome}, nil, false},
		"lost after the caller gave up": {ends, ofB(func(ctx context.Context, l *journal, cancel func(), req locker.Request) error {
			defer cancel()
			return lost(fmt.Errorf("%w: %w", refused, context.Canceled))(ctx, l, cancel, req)
		}), "b", time.Second, "+a -a", errs{locker.ErrNotAcquired, context.Canceled}, errs{locker.ErrLost}, false},
		"two refusals, no wait":         {once, tries(map[string]error{"a": refused, "c": refused}, nil), "a", 0, "+b -b", errs{refused}, nil, false},
		"a refusal and an unknown":      {once, tries(map[string]error{"a": refused, "c": unknown}, nil), "c", 0, "+b -b", errs{unknown}, nil, false},
		"a refusal and a permanent":     {once, tries(map[string]error{"a": refused, "c": permanent}, nil), "c", 0, "+b -b", errs{io.EOF}, nil, false},
		"a refusal and an unsupported":  {once, tries(map[string]error{"a": refused, "c": errors.ErrUnsupported}, nil), "c", 0, "+b -b", errs{errors.ErrUnsupported}, nil, false},
		"an unsupported, no wait for a": {named("a", "c"), tries(map[string]error{"a": refused, "c": errors.ErrUnsupported}, nil), "c", 0, "", errs{errors.ErrUnsupported}, nil, false},
		"an unknown and a permanent":    {once, tries(map[string]error{"a": unknown, "c": permanent}, nil), "c", 0, "+b -b", errs{io.EOF, unknown}, nil, false},
		"unknown, then another failed":  {named("a", "b"), tries(map[string]error{"a": refused, "b": unknown}, io.EOF), "a", 0, "", errs{io.EOF, unknown}, nil, true},
		// A refusal of another name stays a refusal.
		"unknown, then another refused": {named("a", "b"), tries(map[string]error{"a": refused, "b": unknown}, refused), "a", 0, "", errs{refused}, errs{unknown}, true},
		"lost, not noticed by the next": {named("a", "b"), ofB(waiting(func(_ context.Context, l *journal, _ func(), _ locker.Request) error {
			l.Expire("a")
			return nil
		})), "a", 0, "+a +b -a -b", errs{locker.ErrLost}, nil, false},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l, start := newJournal(), time.Now()
		l.before = func(ctx context.Context, req locker.Request) error { return tt.before(ctx, l, cancel, req) }
		locks, err := locker.AcquireAll(ctx, l, tt.reqs)
		if took := time.Since(start); locks != nil || took != tt.took {
			t.Errorf("%v after %v, want an error after %v", locks, took, tt.took)
		}
		check.Error(t, "AcquireAll", err, tt.want...)
		wantNotError(t, "AcquireAll", err, tt.wantNot...)
		if first := `(the first try: holdfast: acquire "b"`; strings.Contains(err.Error(), first) != tt.first {
			t.Errorf("AcquireAll: %v; want %q in it: %v", err, first, tt.first)
		}
		wantName(t, err, "acquire", tt.of)
		l.wantLog(t, tt.log)
		for _, req := range l.reqs {
			if &tt.reqs[0] == &once[0] && (!req.NoWait || req.MaxWait != 0) {
				t.Errorf("asked for %+v, want NoWait", req)
			}
		}
	})
}

// After a refusal, the locks before the refused one are kept, those behind it are released, and the
// rest is acquired in the order of the names.
func TestAcquireAllAfterARefusal(t *testing.T) {
	t.Parallel()
	type test struct{ refused, waited, log string }
	check.Each(t, map[string]test{
		"of the first":         {"a", "a b c d", "+b +c +d -b -c -d +a +b +c +d -a -b -c -d"},
		"of one in the middle": {"b", "b c d", "+a +c +d -c -d +b +c +d -a -b -c -d"},
		"of two":               {"b d", "b c d", "+a +c -c +b +c +d -a -b -c -d"},
		"of the last":          {"d", "d", "+a +b +c +d -a -b -c -d"},
		"of all":               {"a b c d", "a b c d", "+a +b +c +d -a -b -c -d"},
		"of none":              {"", "", "+a +b +c +d -a -b -c -d"},
	}, func(t *testing.T, tt test) {
		l := newJournal()
		l.before = func(_ context.Context, req locker.Request) error {
			if req.NoWait && strings.Contains(tt.refused, req.Name) {
				return &locker.ContentionError{Name: req.Name}
			}
			return nil
		}
		locks := locker.Must(locker.AcquireAll(t.Context(), l, named("d", "b", "a", "c", "b")))
		all := locks.All()
		var names, waited []string
		for _, lock := range all {
			names = append(names, lock.Name())
		}
		if !slices.Equal(names, []string{"d", "b", "a", "c", "b"}) || all[1] != all[4] {
			t.Errorf("All: %v, want the lock of each request, one for both requests of b", all)
		}
		if locks.Err() != nil || locks.String() != `locks "a", "b", "c", "d" (held)` {
			t.Errorf("%v, Err %v; want it held", locks, locks.Err())
		}
		check.Error(t, "Release", locks.Release(t.Context()))
		check.Error(t, "Err after Release", locks.Err(), locker.ErrReleased)
		check.Error(t, "a second Release", locks.Release(t.Context()), locker.ErrReleased)
		l.wantLog(t, tt.log)
		for _, req := range l.reqs {
			if !req.NoWait {
				waited = append(waited, req.Name)
			}
		}
		check.Equal(t, "the names in the order in which they were waited for", strings.Join(waited, " "), tt.waited)
	})
}

// A waiting call keeps no driver of a released lock from closing.
func TestAcquireAllEndsWhatItGaveBack(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		var open atomic.Int32
		l := newJournal()
		l.before = func(ctx context.Context, req locker.Request) error {
			if req.Name == "b" {
				if !req.NoWait {
					<-ctx.Done()
				}
				return &locker.ContentionError{Name: "b"}
			}
			open.Add(1)
			lease.EndAcquire(ctx, func() { open.Add(-1) }, true)
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- check.ErrOf(locker.AcquireAll(ctx, l, named("a", "b", "c", "d"))) }()
		synctest.Wait()
		check.Equal(t, "acquires in flight while the call waits", open.Load(), 1) // of a
		cancel()
		check.Error(t, "AcquireAll", <-done, locker.ErrNotAcquired)
		check.Equal(t, "acquires in flight after it", open.Load(), 0)
		l.wantLog(t, "+a +c +d -a -c -d")
	})
}

// A panic of the Locker, or of a lock's callback, keeps no lock from being released.
func TestLocksAreReleasedOnPanic(t *testing.T) {
	t.Parallel()
	l := newJournal()
	locks := locker.Must(locker.AcquireAll(t.Context(), l, named("a", "b", "c")))
	locks.All()[1].AfterDone(func(error) { panic("the callback's") })
	check.Panics(t, "the callback's", func() { _ = locks.Release(t.Context()) })
	l.wantLog(t, "+a +b +c -a -b -c")
	for want, end := range map[any]func(){"the Locker's": func() { panic("the Locker's") }, nil: runtime.Goexit} {
		l := newJournal()
		l.before = func(_ context.Context, req locker.Request) error {
			if req.Name == "b" {
				end()
			}
			return nil
		}
		check.Equal(t, "panic", inGoroutine(func() {
			_, err := locker.AcquireAll(t.Context(), l, named("a", "b"))
			t.Errorf("AcquireAll returned %v", err)
		}), want)
		l.wantLog(t, "+a -a")
	}
}

// frozen grants locks; the answers to their releases take d.
func frozen(d time.Duration) locker.Locker {
	return grants(&fakeLease{answer: func(context.Context, lease.Op) (lease.Result, error) {
		<-time.After(d)
		return lease.Result{}, locker.ErrUnknownOutcome
	}})
}

// An outage is waited for once, not once for each lock.
func TestLocksReleaseInAnOutage(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		locks := locker.Must(locker.AcquireAll(t.Context(), frozen(3*time.Second), named("a", "b", "c", "d")))
		start := time.Now()
		err := locks.Release(t.Context())
		check.Error(t, "Release", err, locker.ErrUnknownOutcome)
		for _, name := range []string{"a", "b", "c", "d"} {
			if want := fmt.Sprintf("release %q", name); !strings.Contains(err.Error(), want) {
				t.Errorf("Release: %v; want %q in it", err, want)
			}
		}
		check.Took(t, "Release", start, 3*time.Second)
	})
}

// A call past its deadline does not wait for the releases of its locks.
func TestAcquireAllUndoIsBounded(t *testing.T) {
	t.Parallel()
	type test struct {
		maxWait, deadline time.Duration
		took              time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"MaxWait": {time.Second, time.Hour, 1250 * time.Millisecond},
		"ctx":     {0, time.Second, 1250 * time.Millisecond},
		"neither": {time.Hour, time.Hour, 5 * time.Second},
	}, func(t *testing.T, tt test) {
		ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
		defer cancel()
		grant, start := frozen(3*time.Second), time.Now()
		l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			if req.Name == "b" {
				_ = slowly(time.Second)(ctx, req)
				return nil, &locker.ContentionError{Name: "b"}
			}
			return grant.Acquire(ctx, req)
		})
		_, err := locker.AcquireAll(ctx, l, []locker.Request{{Name: "a"}, {Name: "b", MaxWait: tt.maxWait}})
		check.Error(t, "AcquireAll", err, locker.ErrNotAcquired)
		check.Took(t, "AcquireAll", start, tt.took)
		check.Advance(time.Minute) // the rest of the release ends too
	})
}

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
		lost          string // the name in the error
	}
	check.Each(t, map[string]test{
		"done":            {fn: returns(nil), log: backward},
		"failed":          {returns(errWork), backward, errs{errWork}, errs{locker.ErrNotHeld}, ""},
		"one is lost":     {after(func(l *lockertest.Locker) { l.Expire("b") }), backward, errs{locker.ErrLost}, nil, "b"},
		"one is gone":     {after(func(l *lockertest.Locker) { l.Forget("a") }), backward, errs{locker.ErrLost}, nil, "a"},
		"a release fails": {after(func(l *lockertest.Locker) { l.FailRelease(io.EOF) }), "", errs{io.EOF}, errs{locker.ErrLost}, ""},
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
			want: errs{locker.ErrLost}, log: "+a +b +c -a -b -c", lost: "c",
		},
		"one is released, another one is lost and released": {
			fn: func(ctx context.Context, l *lockertest.Locker, locks *locker.Locks) error {
				check.Must(t, releaseB(ctx, l, locks))
				check.Error(t, "Err", locks.Err(), locker.ErrReleased)
				l.Expire("c")
				_ = locks.Release(ctx)
				return nil
			},
			want: errs{locker.ErrLost}, log: "+a +b +c -a -b -c", lost: "c",
		},
		"one is released, another one is lost, and fn tells": {
			fn: func(ctx context.Context, l *lockertest.Locker, locks *locker.Locks) error {
				check.Must(t, releaseB(ctx, l, locks))
				check.Error(t, "Err", locks.Err(), locker.ErrReleased)
				l.Expire("c")
				return locks.Release(ctx)
			},
			want: errs{locker.ErrLost}, log: "+a +b +c -a -b -c", lost: "c",
		},
	}, func(t *testing.T, tt test) {
		l := newJournal()
		err := locker.DoAll(t.Context(), l, named("c", "a", "b"), func(ctx context.Context, locks *locker.Locks) error {
			for _, lock := range locks.All() {
				if owner, _ := lease.OwnerFrom(ctx, lock.Name()); owner != lock.Owner() {
					t.Errorf("fn's ctx carries owner %q for %v", owner, lock)
				}
			}
			return tt.fn(ctx, l.Locker, locks)
		})
		check.Error(t, "DoAll", err, tt.want...)
		if tt.lost != "" {
			wantName(t, err, "release", tt.lost)
			check.Equal(t, "losses told", strings.Count(err.Error(), locker.ErrLost.Error()), 1)
		}
		wantNotError(t, "DoAll", err, tt.wantNot...)
		if tt.log != "" {
			l.wantLog(t, tt.log)
		}
	})
}

// journal is a Locker in memory that records acquires and releases, in order.
type journal struct {
	*lockertest.Locker
	before func(ctx context.Context, req locker.Request) error // of each acquire; nil: nothing

	mu   sync.Mutex
	reqs []locker.Request
	log  []string
}

func newJournal() *journal { return &journal{Locker: lockertest.New()} }

func (j *journal) note(event, name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log = append(j.log, event+name)
}

func (j *journal) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	j.mu.Lock()
	j.reqs = append(j.reqs, req)
	j.mu.Unlock()
	if j.before != nil {
		if err := j.before(ctx, req); err != nil {
			return nil, err
		}
	}
	lock, err := j.Locker.Acquire(locktrace.With(context.WithoutCancel(ctx), &locktrace.Trace{
		Released: func(_ context.Context, info locktrace.ReleasedInfo) { j.note("-", info.Name) },
	}), req)
	if err == nil {
		j.note("+", req.Name)
	}
	return lock, err
}

// wantLog demands exactly these acquires (+) and releases (-). Concurrent acquires, and releases,
// are in the order of the names.
func (j *journal) wantLog(t *testing.T, want string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, start := 1, 0; i <= len(j.log); i++ {
		if i == len(j.log) || j.log[i][0] != j.log[start][0] {
			slices.Sort(j.log[start:i])
			start = i
		}
	}
	if got := strings.Join(j.log, " "); got != want {
		t.Errorf("acquired and released %q, want %q", got, want)
	}
}

func named(names ...string) (reqs []locker.Request) {
	for _, name := range names {
		reqs = append(reqs, locker.Request{Name: name})
	}
	return reqs
}

func wantName(t *testing.T, err error, op, name string) {
	t.Helper()
	if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Op != op || oe.Name != name {
		t.Errorf("error %v, want an OpError of %q of %q", err, op, name)
	}
}

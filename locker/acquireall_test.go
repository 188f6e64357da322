package locker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestAcquireAllInOrder(t *testing.T) {
	t.Parallel()
	l := newJournal()
	locks, err := locker.AcquireAll(t.Context(), l, named("c", "a", "b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	all := locks.All()
	var names []string
	for _, lock := range all {
		names = append(names, lock.Name())
	}
	if !slices.Equal(names, []string{"c", "a", "b", "a"}) || all[1] != all[3] {
		t.Errorf("All: %v, want the lock of each request, one for both requests of a", all)
	}
	if locks.Err() != nil || locks.String() != `locks "a", "b", "c" (held)` {
		t.Errorf("%v, Err %v; want it held", locks, locks.Err())
	}
	wantError(t, "Release", locks.Release(t.Context()))
	wantError(t, "Err after Release", locks.Err(), locker.ErrReleased)
	wantError(t, "a second Release", locks.Release(t.Context()), locker.ErrReleased)
	l.wantLog(t, "+a +b +c -c -b -a")
}

// Two requests for one name are one request that grants both.
func TestAcquireAllMerges(t *testing.T) {
	t.Parallel()
	const sh = locker.Shared
	tests := []struct {
		name       string
		a, b, want locker.Request
	}{
		{"nothing", locker.Request{}, locker.Request{}, locker.Request{}},
		{"shared and exclusive", locker.Request{Mode: sh}, locker.Request{}, locker.Request{}},
		{"shared twice", locker.Request{Mode: sh}, locker.Request{Mode: sh}, locker.Request{Mode: sh}},
		{"one is fenced", locker.Request{}, locker.Request{Fenced: true}, locker.Request{Fenced: true}},
		{"TTLs", locker.Request{TTL: time.Second}, locker.Request{TTL: time.Minute}, locker.Request{TTL: time.Minute}},
		{"a TTL and none", locker.Request{TTL: time.Second}, locker.Request{}, locker.Request{TTL: time.Second}},
		{"an owner and none", locker.Request{}, locker.Request{Owner: "me"}, locker.Request{Owner: "me"}},
		{"one owner", locker.Request{Owner: "me"}, locker.Request{Owner: "me"}, locker.Request{Owner: "me"}},
		{"notes", locker.Request{Note: "1"}, locker.Request{Note: "2"}, locker.Request{Note: "1"}},
		{"a note and none", locker.Request{}, locker.Request{Note: "2"}, locker.Request{Note: "2"}},
		{"one permit by default", locker.Request{Permits: 1}, locker.Request{}, locker.Request{Permits: 1}},
		{"one does not wait", locker.Request{}, locker.Request{NoWait: true}, locker.Request{NoWait: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newJournal()
			tt.a.Name, tt.b.Name, tt.want.Name = "a", "a", "a"
			locks, err := locker.AcquireAll(t.Context(), l, []locker.Request{tt.a, tt.b})
			wantError(t, "AcquireAll", err)
			if len(l.reqs) != 1 || l.reqs[0] != tt.want {
				t.Errorf("asked for %+v, want %+v once", l.reqs, tt.want)
			}
			wantError(t, "Release", locks.Release(t.Context()))
		})
	}
}

func TestAcquireAllRefuses(t *testing.T) {
	t.Parallel()
	var many []locker.Request
	for i := range locker.MaxNames {
		many = append(many, locker.Request{Name: fmt.Sprint("n", i)}, locker.Request{Name: fmt.Sprint("n", i)})
	}
	h := locker.NewHandle(lease.Grant{Name: "b", Token: secret})
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
		{"two owners", t.Context(), l, []locker.Request{{Name: "a", Owner: "x"}, {Name: "a", Owner: "y"}}, "a", `"x" and "y" for one name`},
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
	l.wantLog(t, "")

	locks, err := locker.AcquireAll(t.Context(), l, many)
	wantError(t, "AcquireAll of as many as there may be", err)
	wantError(t, "Release", locks.Release(t.Context()))
}

// If one cannot be acquired, the others are released.
func TestAcquireAllOrNone(t *testing.T) {
	t.Parallel()
	l := newJournal()
	held := l.Hold(locker.Request{Name: "c", Owner: "other"})
	locks, err := locker.AcquireAll(t.Context(), l, named("d", "c", "b", "a"))
	if locks != nil {
		t.Errorf("%v beside %v", locks, err)
	}
	wantError(t, "AcquireAll", err, locker.ErrNotAcquired)
	wantName(t, err, "acquire", "c")
	if ce, ok := errors.AsType[*locker.ContentionError](err); !ok || ce.Owner != "other" {
		t.Errorf("%v, want the holder", err)
	}
	l.wantLog(t, "+a +b -b -a")

	l.before = func(_ context.Context, req locker.Request) error {
		if req.Name == "b" {
			return io.EOF // of a Locker that does not wrap its errors
		}
		return nil
	}
	_, err = locker.AcquireAll(t.Context(), l, named("a", "b"))
	wantError(t, "AcquireAll", err, io.EOF)
	wantName(t, err, "acquire", "b")
	wantError(t, "Release", held.Release(t.Context()))
}

func TestAcquireAllReleasesOnPanic(t *testing.T) {
	t.Parallel()
	l := newJournal()
	l.before = func(_ context.Context, req locker.Request) error {
		if req.Name == "b" {
			panic("the Locker's panic")
		}
		return nil
	}
	func() {
		defer func() {
			if got := recover(); got != "the Locker's panic" {
				t.Errorf("panic with %v, want the Locker's", got)
			}
		}()
		_, _ = locker.AcquireAll(t.Context(), l, named("a", "b"))
	}()
	l.wantLog(t, "+a -a")
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

// The shortest MaxWait bounds the whole call.
func TestAcquireAllMaxWait(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		each   time.Duration
		failed string
		log    string
	}{
		{400 * time.Millisecond, "c", "+a +b -b -a"},
		{500 * time.Millisecond, "c", "+a +b -b -a"}, // no time is left for c
		{time.Hour, "a", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, start := newJournal(), time.Now()
			l.before = slowly(tt.each)
			_, err := locker.AcquireAll(t.Context(), l, []locker.Request{{Name: "c", MaxWait: time.Hour}, {Name: "a"}, {Name: "b", MaxWait: time.Second}})
			wantError(t, "AcquireAll", err, locker.ErrMaxWait)
			wantName(t, err, "acquire", tt.failed)
			if took := time.Since(start); took != time.Second {
				t.Errorf("AcquireAll took %v, want 1s", took)
			}
			l.wantLog(t, tt.log)
		})
	}
}

func TestAcquireAllNoWait(t *testing.T) {
	t.Parallel()
	l := newJournal()
	locks, err := locker.AcquireAll(t.Context(), l, []locker.Request{{Name: "a"}, {Name: "b", NoWait: true}})
	wantError(t, "AcquireAll", err)
	for _, req := range l.reqs {
		if !req.NoWait || req.MaxWait != 0 {
			t.Errorf("asked for %+v, want NoWait", req)
		}
	}
	wantError(t, "Release", locks.Release(t.Context()))
}

// A lock that is lost while the next one is waited for ends the wait.
func TestAcquireAllLost(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		unknown bool
		cancel  bool
		want    []error
		wantNot []error
		of      string
	}{
		{"lost", false, false, []error{locker.ErrLost}, []error{locker.ErrNotAcquired, context.Canceled}, "a"},
		{"lost, and the next one unknown", true, false, []error{locker.ErrLost, locker.ErrUnknownOutcome}, nil, "a"},
		{"lost after the caller gave up", false, true, []error{locker.ErrNotAcquired, context.Canceled}, []error{locker.ErrLost}, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l, start := newJournal(), time.Now()
				l.before = func(waiting context.Context, req locker.Request) error {
					if req.Name == "a" {
						return nil
					}
					<-waiting.Done()
					switch {
					case tt.unknown:
						return locker.ErrUnknownOutcome
					case tt.cancel:
						cancel()
						return fmt.Errorf("%w: %w", &locker.ContentionError{Name: req.Name}, ctx.Err())
					}
					return &locker.ContentionError{Name: req.Name}
				}
				_, err := locker.AcquireAll(ctx, l, []locker.Request{{Name: "a", TTL: time.Second}, {Name: "b"}})
				wantError(t, "AcquireAll", err, tt.want...)
				wantNotError(t, "AcquireAll", err, tt.wantNot...)
				wantName(t, err, "acquire", tt.of)
				if took := time.Since(start); took != time.Second {
					t.Errorf("AcquireAll took %v, want 1s", took)
				}
				l.wantLog(t, "+a -a")
			})
		})
	}
}

// A lock that is lost just before the last one is acquired is noticed.
func TestAcquireAllLostUnheard(t *testing.T) {
	t.Parallel()
	l := newJournal()
	l.before = func(_ context.Context, req locker.Request) error {
		if req.Name == "b" {
			l.Expire("a")
		}
		return nil
	}
	locks, err := locker.AcquireAll(t.Context(), l, named("a", "b"))
	if locks != nil {
		t.Errorf("%v beside %v", locks, err)
	}
	wantError(t, "AcquireAll", err, locker.ErrLost)
	wantName(t, err, "acquire", "a")
	l.wantLog(t, "+a +b -b -a")
}

// A callback of one lock that panics keeps none from being released.
func TestLocksReleaseOverPanic(t *testing.T) {
	t.Parallel()
	l := newJournal()
	locks := locker.Must(locker.AcquireAll(t.Context(), l, named("a", "b", "c")))
	locks.All()[1].AfterDone(func(error) { panic("the callback's panic") })
	func() {
		defer func() {
			if got := recover(); got != "the callback's panic" {
				t.Errorf("panic with %v, want the callback's", got)
			}
		}()
		_ = locks.Release(t.Context())
	}()
	l.wantLog(t, "+a +b +c -c -b -a")
}

// frozen grants locks whose releases are not answered for d.
func frozen(d time.Duration) locker.Locker {
	return grants(&fakeLease{answer: func(context.Context, lease.Op) (lease.Term, error) {
		<-time.After(d)
		return lease.Term{}, locker.ErrUnknownOutcome
	}})
}

// An outage is waited for twice, not once for each lock.
func TestLocksReleaseInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := locker.Must(locker.AcquireAll(t.Context(), frozen(3*time.Second), named("a", "b", "c", "d")))
		start := time.Now()
		err := locks.Release(t.Context())
		wantError(t, "Release", err, locker.ErrUnknownOutcome)
		for _, name := range []string{"a", "b", "c", "d"} {
			if want := fmt.Sprintf("release %q", name); !strings.Contains(err.Error(), want) {
				t.Errorf("Release: %v; want %q in it", err, want)
			}
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("Release took %v, want 6s", took)
		}
	})
}

// A call whose time is over does not wait for the releases of what it had acquired.
func TestAcquireAllUndoIsBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		maxWait, deadline time.Duration
		took              time.Duration
	}{
		"MaxWait": {time.Second, time.Hour, 1250 * time.Millisecond},
		"ctx":     {0, time.Second, 1250 * time.Millisecond},
		"neither": {time.Hour, time.Hour, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
				defer cancel()
				grant, start := frozen(3*time.Second), time.Now()
				l := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
					if req.Name == "b" {
						select {
						case <-time.After(min(time.Second, cmp.Or(req.MaxWait, time.Hour))):
						case <-ctx.Done():
						}
						return nil, &locker.ContentionError{Name: "b"}
					}
					return grant.Acquire(ctx, req)
				})
				_, err := locker.AcquireAll(ctx, l, []locker.Request{{Name: "a"}, {Name: "b", MaxWait: tt.maxWait}})
				wantError(t, "AcquireAll", err, locker.ErrNotAcquired)
				if took := time.Since(start); took != tt.took {
					t.Errorf("AcquireAll took %v, want %v", took, tt.took)
				}
				advance(time.Minute) // the release that goes on ends too
			})
		})
	}
}

package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/internal/telemetry"
)

// elapse lets fake time pass.
func elapse(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // in bubbles only

// observing is an Observer that records the calls of its hooks.
func observing(events *[]string) *telemetry.Observer[string] {
	log := func(a *telemetry.Acquisition[string], event string) { *events = append(*events, a.Data+" "+event) }
	return telemetry.NewObserver(telemetry.Hooks[string]{
		Attempt: func(_ context.Context, a *telemetry.Acquisition[string], i locktrace.AttemptInfo) {
			log(a, "attempt "+i.Strategy)
		},
		Waiting: func(a *telemetry.Acquisition[string], _ locktrace.WaitingInfo) { log(a, "waiting") },
		Woken:   func(a *telemetry.Acquisition[string], _ locktrace.WokenInfo) { log(a, "woken") },
		Waiters: func(a *telemetry.Acquisition[string], change int64) { log(a, fmt.Sprint("waiters ", change)) },
	})
}

func attempt(ctx context.Context, strategy, address string) {
	part := strategy == "node"
	locktrace.From(ctx).Attempt(ctx, locktrace.AttemptInfo{Source: locktrace.Source{Strategy: strategy, Address: address}, AtNode: part})
}

func wait(ctx context.Context) { locktrace.From(ctx).Waiting(ctx, locktrace.WaitingInfo{}) }
func wake(ctx context.Context) { locktrace.From(ctx).Woken(ctx, locktrace.WokenInfo{}) }

// Overlapping waits, as of a quorum's nodes, count as one wait. A waiter counts until its End. Late
// events are ignored.
func TestAcquisition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var events []string
		o := observing(&events)
		a, ctx := o.Begin(t.Context())
		a.Data = "a"
		if o.Of(ctx) != a || o.Of(t.Context()) != nil {
			t.Error("the acquisition is not found in its ctx, or is in another")
		}
		wake(ctx) // of an unreported wait
		attempt(ctx, "node", "1")
		attempt(ctx, "node", "2")
		wait(ctx)
		elapse(time.Second)
		wait(context.WithoutCancel(ctx))
		elapse(time.Second)
		wake(ctx)
		elapse(time.Second)
		wake(ctx)
		elapse(time.Minute)
		attempt(ctx, "quorum", "1,2")
		attempt(ctx, "node", "3") // late
		wait(ctx)
		elapse(time.Second)
		r := a.End(nil, op(locker.ErrMaxWait))
		want := telemetry.Result{
			Outcome: telemetry.Timeout, Source: locktrace.Source{Strategy: "quorum", Address: "1,2"}, Attempts: 1, Contended: true,
			Took: time.Minute + 4*time.Second, Waited: 4 * time.Second, GaveUp: true,
		}
		check.Equal(t, "came to", r, want)
		attempt(ctx, "node", "2")
		wait(ctx)
		wake(ctx)
		a.Meanwhile(func() { t.Error("called after the end") })
		if want := []string{
			"a attempt node", "a attempt node", "a waiters 1", "a waiting", "a waiting", "a woken", "a woken",
			"a attempt quorum", "a attempt node", "a waiting", "a waiters -1",
		}; !slices.Equal(events, want) {
			t.Errorf("events %q, want %q", events, want)
		}
	})
}

// Two middlewares observe one acquisition independently.
func TestObserversSideBySide(t *testing.T) {
	t.Parallel()
	var events []string
	one, two := observing(&events), observing(&events)
	a, ctx := one.Begin(t.Context())
	b, ctx := two.Begin(ctx)
	a.Data, b.Data = "a", "b"
	attempt(ctx, "node", "")
	lock := locker.Must(lockertest.New().Acquire(ctx, locker.Request{Name: "x"}))
	attempt(ctx, "node", "")
	for _, r := range []telemetry.Result{b.End(lock, nil), a.End(lock, nil)} {
		if r.Outcome != telemetry.Acquired || r.Attempts != 1 || r.Source.Strategy != "lockertest" || r.GaveUp {
			t.Errorf("came to %+v", r)
		}
	}
	if want := []string{
		"b attempt node", "a attempt node", "b attempt lockertest", "a attempt lockertest", "b attempt node", "a attempt node",
	}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

// Contention is a refusal of the whole acquire, or other waiters of this process ahead of it, and
// is reported once. An outage is not contention, nor is a quorum's node held by others.
func TestContended(t *testing.T) {
	t.Parallel()
	refused := op(fmt.Errorf("%w; one attempt was made", &locker.ContentionError{Name: "a", Owner: "w7"}))
	attempted := func(i locktrace.AttemptInfo) func(context.Context) {
		return func(ctx context.Context) { locktrace.From(ctx).Attempt(ctx, i) }
	}
	waits := func(i locktrace.WaitingInfo) func(context.Context) {
		return func(ctx context.Context) { locktrace.From(ctx).Waiting(ctx, i); wake(ctx) }
	}
	type test struct {
		steps []func(context.Context)
		err   error
		want  string // the hook's argument; "": no call
	}
	check.Each(t, map[string]test{
		"acquired at once":            {steps: []func(context.Context){attempted(locktrace.AttemptInfo{})}},
		"refused, by the error alone": {err: refused, want: "w7 queued 0"},
		"refused, then acquired": {
			want: "w7 queued 0", steps: []func(context.Context){
				attempted(locktrace.AttemptInfo{Err: refused}), waits(locktrace.WaitingInfo{Err: refused}), attempted(locktrace.AttemptInfo{Err: refused}),
				attempted(locktrace.AttemptInfo{}),
			},
		},
		"queued, then acquired": {want: "nobody queued 2", steps: []func(context.Context){
			waits(locktrace.WaitingInfo{Queued: 2}), attempted(locktrace.AttemptInfo{}),
		}},
		"an outage, then acquired": {steps: []func(context.Context){
			attempted(locktrace.AttemptInfo{Err: io.EOF}), waits(locktrace.WaitingInfo{Err: io.EOF}), attempted(locktrace.AttemptInfo{}),
		}},
		"a part refused, the whole acquired": {steps: []func(context.Context){
			attempted(locktrace.AttemptInfo{AtNode: true, Err: refused}), attempted(locktrace.AttemptInfo{}),
		}},
		"called off": {err: op(context.Canceled)},
	}, func(t *testing.T, tt test) {
		var told []string
		a, ctx := telemetry.NewObserver(telemetry.Hooks[string]{Contended: func(_ *telemetry.Acquisition[string], refusal error, queued int) {
			who := "nobody"
			if held := telemetry.Holder(refusal, true); held != nil {
				who = held.Owner
			}
			told = append(told, fmt.Sprint(who, " queued ", queued))
		}}).Begin(t.Context())
		for _, step := range tt.steps {
			step(ctx)
		}
		if r := a.End(nil, tt.err); r.Contended != (tt.want != "") || strings.Join(told, "; ") != tt.want {
			t.Errorf("contended: %t, told %q; want %q", r.Contended, told, tt.want)
		}
	})
}

// A middleware may be around a quorum and around each of its nodes. Each acquisition gets the
// events inside it once.
func TestOneObserverNested(t *testing.T) {
	t.Parallel()
	var events []string
	o := observing(&events)
	outer, ctx := o.Begin(t.Context())
	outer.Data = "outer"
	first, below := o.Begin(ctx)
	first.Data = "first"
	second, beside := o.Begin(ctx)
	second.Data = "second"
	attempt(below, "single", "1")
	attempt(beside, "single", "2")
	wait(below)
	for _, r := range []telemetry.Result{first.End(nil, nil), second.End(nil, nil)} {
		check.Equal(t, "attempts of an inner one", r.Attempts, 1)
	}
	wake(below)
	attempt(ctx, "quorum", "1,2")
	if r := outer.End(nil, nil); r.Attempts != 3 || r.Source.Strategy != "quorum" || r.GaveUp {
		t.Errorf("the outer one came to %+v", r)
	}
	if o.Of(below) != first || o.Of(beside) != second || o.Of(ctx) != outer {
		t.Error("an acquisition is not found in its ctx")
	}
	if want := []string{
		"first attempt single", "outer attempt single", "second attempt single", "outer attempt single", "first waiters 1", "first waiting",
		"outer waiters 1", "outer waiting", "first waiters -1", "outer woken", "outer attempt quorum", "outer waiters -1",
	}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
}

// An Acquisition is its acquire's ctx: it has the values of the caller's ctx, and ends with it.
func TestAcquisitionIsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	outer, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
	var events []string
	_, ctx := observing(&events).Begin(outer)
	inner, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	cancel()
	if inner.Value(key{}) != "v" || !errors.Is(inner.Err(), context.Canceled) {
		t.Errorf("value %v, Err %v", inner.Value(key{}), inner.Err())
	}
}

func TestMiddlewareChecksArguments(t *testing.T) {
	t.Parallel()
	var passed locker.Locker
	wrap := telemetry.Middleware("x", func(_ context.Context, inner locker.Locker, _ locker.Request) (*locker.Lock, error) {
		passed = inner
		return nil, nil //nolint:nilnil // nobody looks
	})
	ok := lockertest.New()
	if _, err := wrap(ok).Acquire(t.Context(), locker.Request{}); err != nil || passed != ok {
		t.Errorf("%v, %v: a request is none of our business", passed, err)
	}
	passed = nil
	for what, acquire := range map[string]func() (*locker.Lock, error){
		"ctx":    func() (*locker.Lock, error) { return wrap(ok).Acquire(nil, locker.Request{Name: "a"}) }, //nolint:staticcheck // on purpose
		"Locker": func() (*locker.Lock, error) { return wrap(nil).Acquire(t.Context(), locker.Request{Name: "a"}) },
	} {
		_, err := acquire()
		if o, is := errors.AsType[*locker.OpError](err); !is || o.Name != "a" || o.Op != "acquire" || !errors.Is(err, locker.ErrInvalid) || passed != nil {
			t.Errorf("nil %s: error %v", what, err)
		}
	}
}

func TestWatchingAllocates(t *testing.T) {
	o := telemetry.NewObserver(telemetry.Hooks[string]{})
	ctx := context.Background()
	if got := testing.AllocsPerRun(100, func() {
		a, _ := o.Begin(ctx)
		a.End(nil, nil)
	}); got > 2 {
		t.Errorf("%v allocations, want 2", got)
	}
}

package lockertest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func acquire(t *testing.T, l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	lock, err := l.Acquire(t.Context(), req)
	if err != nil {
		t.Fatalf("Acquire(%+v): %v", req, err)
	}
	return lock
}

func release(t *testing.T, lock *locker.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}

func inspect(t *testing.T, l *lockertest.Locker, name string) locker.State {
	t.Helper()
	state, err := l.Inspect(t.Context(), name)
	if err != nil {
		t.Fatalf("Inspect(%q): %v", name, err)
	}
	return state
}

// advance lets d pass on the clock of a bubble, and lets everybody act on it.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantError(t *testing.T, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: %v, want an error that matches %q", what, err, w)
		}
	}
}

func wantOp(t *testing.T, err error, op string) {
	t.Helper()
	var oe *locker.OpError
	if !errors.As(err, &oe) || oe.Op != op {
		t.Errorf("error %v, want an OpError of %q", err, op)
	}
}

func TestZeroLockerIsReady(t *testing.T) {
	t.Parallel()
	var l lockertest.Locker
	lock := acquire(t, &l, locker.Request{Name: "a"})
	if got := lock.TTL(); got != locker.DefaultTTL {
		t.Errorf("TTL of a request without: %v, want %v", got, locker.DefaultTTL)
	}
	release(t, lock)
	if got := inspect(t, &l, "a"); got != (locker.State{}) {
		t.Errorf("after the release: %+v, want nothing", got)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	const ex, sh = locker.Exclusive, locker.Shared
	tests := []struct {
		name  string
		held  []locker.Mode
		asked locker.Mode
		ok    bool
	}{
		{"exclusive on a free name", nil, ex, true},
		{"shared on a free name", nil, sh, true},
		{"exclusive beside exclusive", []locker.Mode{ex}, ex, false},
		{"shared beside exclusive", []locker.Mode{ex}, sh, false},
		{"exclusive beside shared", []locker.Mode{sh}, ex, false},
		{"shared beside shared", []locker.Mode{sh, sh}, sh, true},
		{"exclusive beside several shared", []locker.Mode{sh, sh}, ex, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := lockertest.New()
			for _, mode := range tt.held {
				acquire(t, l, locker.Request{Name: "a", Mode: mode})
			}
			lock, err := l.Acquire(t.Context(), locker.Request{Name: "a", Mode: tt.asked})
			if tt.ok != (err == nil) || tt.ok != (lock != nil) {
				t.Fatalf("Acquire: %v, %v; want success: %v", lock, err, tt.ok)
			}
			if !tt.ok {
				wantError(t, "Acquire", err, locker.ErrNotAcquired)
				wantOp(t, err, "acquire")
				return
			}
			if lock.Mode() != tt.asked || inspect(t, l, "a").Holds != len(tt.held)+1 {
				t.Errorf("mode %v, %d holds; want %v, %d", lock.Mode(), inspect(t, l, "a").Holds, tt.asked, len(tt.held)+1)
			}
			if acquire(t, l, locker.Request{Name: "b"}) == nil {
				t.Error("another name is not free")
			}
		})
	}
}

// It is no reentrant lock, whoever asks.
func TestOwnerDoesNotReenter(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	ctx := locker.WithOwner(t.Context(), "me")
	lock, err := l.Acquire(ctx, locker.Request{Name: "a"})
	if err != nil || lock.Owner() != "me" {
		t.Fatalf("Acquire: %v, %v; want a Lock of the owner in ctx", lock, err)
	}
	_, err = l.Acquire(ctx, locker.Request{Name: "a"})
	wantError(t, "Acquire by the same owner", err, locker.ErrNotAcquired)
}

func TestOwnerOfRequestWins(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock, err := l.Acquire(locker.WithOwner(t.Context(), "ctx"), locker.Request{Name: "a", Owner: "request"})
	if err != nil || lock.Owner() != "request" {
		t.Fatalf("Acquire: %v, %v; want the request's owner", lock, err)
	}
	other := acquire(t, l, locker.Request{Name: "b"})
	if other.Owner() == "" || other.Owner() == lock.Owner() {
		t.Errorf("owner %q of a request without, want a random one", other.Owner())
	}
	if got := inspect(t, l, "b").Owner; got != "" {
		t.Errorf("stored owner %q of a request without, want none", got)
	}
}

func TestContention(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		acquire(t, l, locker.Request{Name: "a", Owner: "w1", Note: "host 1", TTL: time.Minute})
		advance(10 * time.Second)
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		var ce *locker.ContentionError
		if !errors.As(err, &ce) {
			t.Fatalf("Acquire: %v, want a ContentionError", err)
		}
		want := locker.ContentionError{Name: "a", Owner: "w1", Note: "host 1", RetryAfter: 50 * time.Second}
		if *ce != want {
			t.Errorf("refusal %+v, want %+v", *ce, want)
		}
		state := inspect(t, l, "a")
		if want := (locker.State{Held: true, Owner: "w1", Note: "host 1", Holds: 1, Left: 50 * time.Second}); state != want {
			t.Errorf("state %+v, want %+v", state, want)
		}
	})
}

// A writer must wait for the reader that stays longest, who may not be the one that came last.
func TestContentionWithReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		for _, ttl := range []time.Duration{time.Second, time.Minute, 2 * time.Second} {
			acquire(t, l, locker.Request{Name: "a", Mode: locker.Shared, TTL: ttl, Owner: ttl.String()})
		}
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		var ce *locker.ContentionError
		if !errors.As(err, &ce) || ce.RetryAfter != time.Minute || ce.Owner != "1s" {
			t.Errorf("Acquire: %v, want a refusal by 1s for a minute", err)
		}
		advance(time.Second)
		if state := inspect(t, l, "a"); state.Holds != 2 || state.Owner != "1m0s" || state.Left != 59*time.Second {
			t.Errorf("state %+v after the first reader's lease, want two holds, of 1m0s, for 59s", state)
		}
	})
}

func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		start := time.Now()
		lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Second})
		if want := start.Add(time.Second); !lock.Deadline().Equal(want) {
			t.Errorf("Deadline %v, want %v", lock.Deadline(), want)
		}
		advance(time.Second - 1)
		if err := lock.Err(); err != nil {
			t.Errorf("Err just before the Deadline: %v", err)
		}
		if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); !errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("Acquire just before the Deadline: %v, want ErrNotAcquired", err)
		}
		<-lock.Done()
		if got := time.Since(start); got != time.Second {
			t.Errorf("Done closed after %v, want 1s", got)
		}
		wantError(t, "Renew after the end", lock.Renew(t.Context(), time.Hour), locker.ErrLost)
		acquire(t, l, locker.Request{Name: "a"})
		wantError(t, "Release after the end", lock.Release(t.Context()), locker.ErrLost)
		if !inspect(t, l, "a").Held {
			t.Error("the late release took away the next holder's lock")
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Minute})
		steps := []struct {
			wait, ttl, left time.Duration
		}{
			{0, time.Second, time.Minute}, // never shortens
			{10 * time.Second, 0, time.Minute},
			{0, time.Hour, time.Hour},
			{time.Minute, 0, 59 * time.Minute},
			{0, time.Hour + time.Microsecond, time.Hour}, // whole milliseconds
		}
		for _, s := range steps {
			advance(s.wait)
			if err := lock.Renew(t.Context(), s.ttl); err != nil {
				t.Fatalf("Renew(%v): %v", s.ttl, err)
			}
			if left := time.Until(lock.Deadline()); left != s.left {
				t.Errorf("after Renew(%v): %v left by the Lock, want %v", s.ttl, left, s.left)
			}
			if left := inspect(t, l, "a").Left; left != s.left {
				t.Errorf("after Renew(%v): %v left by Inspect, want %v", s.ttl, left, s.left)
			}
		}
	})
}

func TestWholeMilliseconds(t *testing.T) {
	t.Parallel()
	lock := acquire(t, lockertest.New(), locker.Request{Name: "a", TTL: 1999 * time.Microsecond})
	if got := lock.TTL(); got != time.Millisecond {
		t.Errorf("TTL %v, want 1ms", got)
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a", Owner: "w", Fenced: true})
	if err := lock.Downgrade(t.Context()); err != nil || lock.Mode() != locker.Shared {
		t.Fatalf("Downgrade: %v, mode %v", err, lock.Mode())
	}
	reader := acquire(t, l, locker.Request{Name: "a", Mode: locker.Shared, Owner: "r"})
	err := lock.Upgrade(t.Context())
	wantOp(t, err, "upgrade")
	var ce *locker.ContentionError
	if !errors.As(err, &ce) || ce.Owner != "r" || lock.Mode() != locker.Shared {
		t.Errorf("Upgrade beside a reader: %v, mode %v; want a refusal by r", err, lock.Mode())
	}
	release(t, reader)
	if err := lock.Upgrade(t.Context()); err != nil || lock.Mode() != locker.Exclusive {
		t.Errorf("Upgrade alone: %v, mode %v", err, lock.Mode())
	}
	if _, err := l.Acquire(t.Context(), locker.Request{Name: "a", Mode: locker.Shared}); !errors.Is(err, locker.ErrNotAcquired) {
		t.Errorf("a reader beside the upgraded lock: %v, want ErrNotAcquired", err)
	}
	if lock.Fence() != 1 {
		t.Errorf("fence %d after conversions, want 1", lock.Fence())
	}
}

func TestFences(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var last int64
	for range 3 {
		lock := acquire(t, l, locker.Request{Name: "a", Fenced: true})
		if lock.Fence() <= last {
			t.Fatalf("fence %d after %d", lock.Fence(), last)
		}
		last = lock.Fence()
		l.Expire("a") // neither loss nor release may take the counter back
	}
	if plain := acquire(t, l, locker.Request{Name: "a"}); plain.Fence() != 0 {
		t.Errorf("fence %d where none was asked for", plain.Fence())
	}
	if other := acquire(t, l, locker.Request{Name: "b", Fenced: true}); other.Fence() != 1 {
		t.Errorf("fence %d of another name, want its own 1", other.Fence())
	}
}

func TestRaiseFence(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var lease locker.Lease
	grab := func(lock *locker.Lock) *locker.Lock {
		locker.WrapLease(lock, func(in locker.Lease) locker.Lease { lease = in; return in })
		return lock
	}
	lock := grab(acquire(t, l, locker.Request{Name: "a", Fenced: true}))
	raise := func(to int64) (int64, error) {
		term, err := lease.Do(t.Context(), locker.Op{Kind: locker.OpRaiseFence, Fence: to})
		return term.Fence, err
	}
	for _, tt := range []struct{ to, want int64 }{{7, 7}, {5, 7}} {
		if got, err := raise(tt.to); err != nil || got != tt.want {
			t.Errorf("raise to %d: %d, %v; want %d", tt.to, got, err, tt.want)
		}
	}
	release(t, lock)
	if _, err := raise(9); !errors.Is(err, locker.ErrNotHeld) {
		t.Errorf("raise after the release: %v, want ErrNotHeld", err)
	}
	if next := acquire(t, l, locker.Request{Name: "a", Fenced: true}); next.Fence() != 8 {
		t.Errorf("fence %d after one of 7, want 8", next.Fence())
	}
	grab(acquire(t, l, locker.Request{Name: "b"}))
	if _, err := raise(2); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("raise where there is no fence: %v, want ErrUnsupported", err)
	}
	if _, err := lease.Do(t.Context(), locker.Op{Kind: 99}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("unknown operation: %v, want ErrUnsupported", err)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockertest.New()
		first := acquire(t, l, locker.Request{Name: "a", Owner: "w", Note: "n", TTL: time.Minute, Fenced: true})
		h, err := locker.ParseHandle(first.Handle().Encode())
		if err != nil {
			t.Fatalf("ParseHandle: %v", err)
		}
		advance(40 * time.Second)
		second, err := locker.Resume(t.Context(), l, h)
		if err != nil {
			t.Fatalf("Resume: %v", err)
		}
		if second.Owner() != "w" || second.Fence() <= first.Fence() || time.Until(second.Deadline()) != time.Minute {
			t.Errorf("resumed: %v until %v, want owner w, a new fence, a minute", second, second.Deadline())
		}
		if state := inspect(t, l, "a"); state.Holds != 1 || state.Owner != "w" || state.Note != "n" {
			t.Errorf("state %+v, want the one hold of w with its note", state)
		}
		wantError(t, "Renew of the first Lock", first.Renew(t.Context(), 0), locker.ErrLost, locker.ErrNotHeld)
		wantError(t, "Release of the first Lock", first.Release(t.Context()), locker.ErrLost)
		_, err = locker.Resume(t.Context(), l, h)
		wantError(t, "Resume with the used handle", err, locker.ErrNotHeld)
		wantOp(t, err, "resume")
		if err := second.Renew(t.Context(), 0); err != nil {
			t.Errorf("Renew of the resumed Lock: %v", err)
		}
		release(t, second)
		_, err = locker.Resume(t.Context(), l, second.Handle())
		wantError(t, "Resume of what was released", err, locker.ErrNotHeld)
	})
}

func TestResumeKeeps(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a", TTL: time.Hour})
	h := lock.Handle()
	again, err := l.Acquire(t.Context(), locker.Request{Name: "a", TTL: time.Second, Resume: h})
	if err != nil {
		t.Fatalf("Resume: %v", err)
	}
	if again.Owner() != lock.Owner() || again.Fence() != 0 {
		t.Errorf("resumed %v, want the random owner %s and no fence", again, lock.Owner())
	}
	if left := time.Until(again.Deadline()); left < 50*time.Minute {
		t.Errorf("%v left, want the hour: a resume shortens no lease", left)
	}
}

// A handle from before the downgrade must not make two locks of different modes out of one hold.
func TestResumeOfAnotherMode(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a"})
	before := lock.Handle()
	if err := lock.Downgrade(t.Context()); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	_, err := locker.Resume(t.Context(), l, before)
	wantError(t, "Resume with the mode from before", err, locker.ErrNotHeld)
	if again, err := locker.Resume(t.Context(), l, lock.Handle()); err != nil || again.Mode() != locker.Shared {
		t.Errorf("Resume with the mode as it is: %v, %v", again, err)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	over, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("user went home")
	cancel(cause)
	tests := []struct {
		name string
		ctx  context.Context
		req  locker.Request
		want []error
	}{
		{"nil ctx", nil, locker.Request{Name: "a"}, []error{locker.ErrInvalid}},
		{"cancelled ctx", over, locker.Request{Name: "a"}, []error{context.Canceled, cause}},
		{"no name", t.Context(), locker.Request{}, []error{locker.ErrInvalid}},
		{"short TTL", t.Context(), locker.Request{Name: "a", TTL: 1}, []error{locker.ErrInvalid}},
		{"unknown mode", t.Context(), locker.Request{Name: "a", Mode: 7}, []error{locker.ErrInvalid}},
		{"long owner in ctx", locker.WithOwner(t.Context(), strings.Repeat("o", 1025)), locker.Request{Name: "a"}, []error{locker.ErrInvalid}},
		{"long note", t.Context(), locker.Request{Name: "a", Note: strings.Repeat("n", 1025)}, []error{locker.ErrInvalid}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := lockertest.New()
			l.FailAcquire(errors.New("kept for a valid request"))
			lock, err := l.Acquire(tt.ctx, tt.req)
			if lock != nil {
				t.Errorf("got a Lock beside %v", err)
			}
			wantError(t, "Acquire", err, tt.want...)
			wantOp(t, err, "acquire")
			if inspect(t, l, "a").Held {
				t.Error("it holds the name")
			}
			if _, err := l.Acquire(t.Context(), locker.Request{Name: "a"}); err == nil {
				t.Error("it used up the failure that was set")
			}
		})
	}
}

func TestBadInspect(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		name string
		want error
	}{{nil, "a", locker.ErrInvalid}, {over, "a", context.Canceled}, {t.Context(), "a}b", locker.ErrInvalid}} {
		state, err := l.Inspect(tt.ctx, tt.name)
		wantError(t, "Inspect", err, tt.want)
		wantOp(t, err, "inspect")
		if state != (locker.State{}) {
			t.Errorf("state %+v beside an error", state)
		}
	}
}

func TestCancelledCtx(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	lock := acquire(t, l, locker.Request{Name: "a"})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, "Renew", lock.Renew(over, 0), context.Canceled)
	wantError(t, "Downgrade", lock.Downgrade(over), context.Canceled)
	if lock.Err() != nil || lock.Mode() != locker.Exclusive {
		t.Errorf("%v: a cancelled call changed it", lock)
	}
	if err := lock.Release(over); err != nil {
		t.Errorf("Release under a cancelled ctx: %v, want it done", err)
	}
	if inspect(t, l, "a").Held {
		t.Error("still held")
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var attempts []locker.AttemptInfo
	var acquired []locker.AcquiredInfo
	ctx := locker.WithTrace(t.Context(), &locker.Trace{
		Attempt: func(_ context.Context, info locker.AttemptInfo) {
			inspect(t, l, info.Name) // a callback may use the Locker
			attempts = append(attempts, info)
		},
		Acquired: func(_ context.Context, info locker.AcquiredInfo) {
			inspect(t, l, info.Name)
			acquired = append(acquired, info)
		},
	})
	for range 2 {
		_, _ = l.Acquire(ctx, locker.Request{Name: "a"})
	}
	if len(attempts) != 2 || attempts[0].Err != nil || !errors.Is(attempts[1].Err, locker.ErrNotAcquired) {
		t.Errorf("attempts %+v, want one that won and one refused", attempts)
	}
	if len(acquired) != 1 || acquired[0].Strategy != "lockertest" || acquired[0].Name != "a" {
		t.Errorf("acquired %+v, want one, of lockertest", acquired)
	}
}

// Many goroutines, one name: never two of them inside, and no hold left.
func TestExclusion(t *testing.T) {
	t.Parallel()
	l := lockertest.New()
	var inside, ran int
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_, err := locker.Try(t.Context(), l, locker.Request{Name: "a"}, func(context.Context, *locker.Lock) error {
					inside++ // the race detector sees a second one, too
					defer func() { inside-- }()
					if inside != 1 {
						t.Errorf("%d inside", inside)
					}
					ran++
					return nil
				})
				if err != nil {
					t.Errorf("Try: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if ran == 0 || inspect(t, l, "a").Held {
		t.Errorf("ran %d times, state %+v", ran, inspect(t, l, "a"))
	}
}

package locker_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestLockOfNothing(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]*locker.Lock{"nil": nil, "zero": new(locker.Lock)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if lock.Name() != "" || lock.Mode() != locker.Exclusive || lock.Owner() != "" || lock.TTL() != 0 || lock.Fence() != 0 ||
				!lock.Deadline().IsZero() || !lock.Handle().IsZero() {
				t.Errorf("%v has facts", lock)
			}
			for what, err := range map[string]error{
				"Err": lock.Err(), "Renew": lock.Renew(t.Context(), 0), "Downgrade": lock.Downgrade(t.Context()),
				"Upgrade": lock.Upgrade(t.Context()), "Release": lock.Release(t.Context()),
			} {
				wantError(t, what, err, locker.ErrNotHeld)
				wantNotError(t, what, err, locker.ErrLost, locker.ErrReleased)
			}
			for what, err := range map[string]error{
				"Renew": lock.Renew(nil, 0), "Downgrade": lock.Downgrade(nil), "Upgrade": lock.Upgrade(nil), "Release": lock.Release(nil), //nolint:staticcheck // nil on purpose
				"Renew with a bad ttl": lock.Renew(t.Context(), -1),
			} {
				wantInvalid(t, what, err)
			}
			if !closed(lock.Done()) {
				t.Error("Done is open")
			}
			var told []error
			stop := lock.AfterDone(func(err error) { told = append(told, err) })
			if len(told) != 1 || !errors.Is(told[0], locker.ErrNotHeld) || stop() {
				t.Errorf("AfterDone said %v, want ErrNotHeld, once, at once", told)
			}
			ctx, cancel := lock.Context(t.Context())
			defer cancel()
			wantError(t, "the cause of its ctx", context.Cause(ctx), locker.ErrNotHeld)
			lock.DropMinHold() // does nothing
			lock.Hold().MarkLost(io.EOF)
			wantNotError(t, "Err after MarkLost", lock.Err(), locker.ErrLost)
		})
	}
}

func TestLockFacts(t *testing.T) {
	t.Parallel()
	deadline := time.Now().Add(time.Hour)
	lock := locker.NewLock(t.Context(), lease.Grant{
		Name: "a", Owner: "me", Token: secret, Mode: locker.Shared, TTL: time.Minute, Deadline: deadline, Fence: 7,
	}, &fakeLease{})
	if lock.Name() != "a" || lock.Owner() != "me" || lock.Mode() != locker.Shared || lock.TTL() != time.Minute || lock.Fence() != 7 ||
		!lock.Deadline().Equal(deadline) || lock.Err() != nil || closed(lock.Done()) {
		t.Errorf("%v, TTL %v, until %v, Err %v; not what was granted", lock, lock.TTL(), lock.Deadline(), lock.Err())
	}
}

func TestNilCtx(t *testing.T) {
	t.Parallel()
	l := &fakeLease{}
	lock := hold(t, l, time.Minute)
	for what, err := range map[string]error{
		"renew": lock.Renew(nil, 0), "downgrade": lock.Downgrade(nil), "upgrade": lock.Upgrade(nil), //nolint:staticcheck // nil on purpose
	} {
		wantInvalid(t, what, err)
		wantOp(t, err, what)
	}
	if len(l.asked()) != 0 || lock.Err() != nil {
		t.Errorf("asked %v, Err %v; want nothing done", l.asked(), lock.Err())
	}
	err := lock.Release(nil) //nolint:staticcheck // nil on purpose
	wantInvalid(t, "release", err)
	wantOp(t, err, "release")
	if asked := l.asked(); len(asked) != 1 || asked[0].Kind != lease.OpRelease {
		t.Errorf("asked %v; want the release, which is terminal", asked)
	}
	wantError(t, "Err", lock.Err(), locker.ErrReleased)
	wantError(t, "Release after one without a ctx", lock.Release(t.Context()), locker.ErrReleased)
}

func TestRenew(t *testing.T) {
	t.Parallel()
	const ttl = time.Minute
	in := func(d time.Duration) func() lease.Term {
		return func() lease.Term { return lease.Term{Deadline: time.Now().Add(d)} }
	}
	never := func() lease.Term { return lease.Term{} }
	tests := []struct {
		name   string
		term   func() lease.Term
		err    error
		want   []error       // what Renew's error matches
		left   time.Duration // until Deadline, a second after the acquire; negative: for ever
		ended  []error       // what Err matches
		fenced int64
	}{
		{name: "extended", term: in(ttl), left: ttl},
		{name: "extended by more", term: in(time.Hour), left: time.Hour},
		{name: "never shortened", term: in(time.Second), left: ttl - time.Second},
		{name: "in the past", term: in(-time.Hour), left: ttl - time.Second},
		{name: "without end", term: never, left: -1},
		{name: "unknown", term: in(ttl), err: locker.ErrUnknownOutcome, want: []error{locker.ErrUnknownOutcome}, left: ttl - time.Second},
		{name: "failed", term: never, err: io.EOF, want: []error{io.EOF}, left: ttl - time.Second},
		{name: "unsupported", term: never, err: errors.ErrUnsupported, want: []error{errors.ErrUnsupported}, left: ttl - time.Second},
		{name: "cancelled", term: never, err: context.Canceled, want: []error{context.Canceled}, left: ttl - time.Second},
		{
			name: "not held", term: in(ttl), err: locker.ErrNotHeld, left: ttl - time.Second,
			want: []error{locker.ErrLost, locker.ErrNotHeld}, ended: []error{locker.ErrLost},
		},
		{
			name: "lost, and why", term: in(ttl), err: errors.Join(locker.ErrLost, io.EOF), left: ttl - time.Second,
			want: []error{locker.ErrLost, io.EOF}, ended: []error{locker.ErrLost, io.EOF},
		},
		{
			name: "not held, and why", term: in(ttl), err: errors.Join(locker.ErrNotHeld, io.EOF), left: ttl - time.Second,
			want: []error{locker.ErrLost, io.EOF}, ended: []error{locker.ErrLost, io.EOF},
		},
		{name: "fence raised", term: func() lease.Term { return lease.Term{Fence: 9} }, left: -1, fenced: 9},
		{name: "fence never lowered", term: func() lease.Term { return lease.Term{Fence: 2} }, left: -1, fenced: 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &fakeLease{answer: func(context.Context, lease.Op) (lease.Term, error) { return tt.term(), tt.err }}
				lock := locker.NewLock(t.Context(), lease.Grant{
					Name: "a", Token: secret, TTL: ttl, Deadline: time.Now().Add(ttl), Fence: min(tt.fenced, 5),
				}, l)
				advance(time.Second)
				err := lock.Renew(t.Context(), 0)
				wantError(t, "Renew", err, tt.want...)
				if err != nil {
					wantOp(t, err, "renew")
				}
				if got := l.asked(); !slices.Equal(got, []lease.Op{{Kind: lease.OpRenew, TTL: ttl}}) {
					t.Errorf("asked %v, want one renewal for the TTL of the acquire", got)
				}
				if left := time.Until(lock.Deadline()); left != tt.left && (tt.left >= 0 || !lock.Deadline().IsZero()) {
					t.Errorf("%v left, want %v", left, tt.left)
				}
				wantError(t, "Err", lock.Err(), tt.ended...)
				if closed(lock.Done()) != (tt.ended != nil) {
					t.Error("Done and Err disagree")
				}
				if lock.Fence() != tt.fenced {
					t.Errorf("fence %d, want %d", lock.Fence(), tt.fenced)
				}
			})
		})
	}
}

func TestRenewPassesOn(t *testing.T) {
	t.Parallel()
	type key struct{}
	l := &fakeLease{answer: func(ctx context.Context, op lease.Op) (lease.Term, error) {
		if ctx.Value(key{}) != "v" || op != (lease.Op{Kind: lease.OpRenew, TTL: time.Hour}) {
			return lease.Term{}, errors.New("not what was asked")
		}
		return lease.Term{}, nil
	}}
	wantError(t, "Renew", hold(t, l, time.Minute).Renew(context.WithValue(t.Context(), key{}, "v"), time.Hour))
}

// A lease without end has none, whatever a later answer says.
func TestRenewOfAnEndlessLease(t *testing.T) {
	t.Parallel()
	lock := hold(t, &fakeLease{}, 0)
	wantError(t, "Renew", lock.Renew(t.Context(), time.Millisecond))
	if !lock.Deadline().IsZero() || lock.Err() != nil {
		t.Errorf("Deadline %v, Err %v; want none", lock.Deadline(), lock.Err())
	}
}

// After the end nothing is sent, and nothing brings the lock back.
func TestNothingIsSentAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*testing.T, *locker.Lock)
		want error
	}{
		"released":          {func(t *testing.T, lock *locker.Lock) { wantError(t, "Release", lock.Release(t.Context())) }, locker.ErrReleased},
		"marked lost":       {func(_ *testing.T, lock *locker.Lock) { lock.Hold().MarkLost(io.EOF) }, locker.ErrLost},
		"past the Deadline": {func(*testing.T, *locker.Lock) { advance(time.Minute) }, locker.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &fakeLease{}
				lock := hold(t, l, time.Minute)
				tt.end(t, lock)
				sent := len(l.asked())
				for range 2 {
					for what, err := range map[string]error{
						"renew": lock.Renew(t.Context(), time.Hour), "downgrade": lock.Downgrade(t.Context()), "upgrade": lock.Upgrade(t.Context()),
					} {
						wantError(t, what, err, tt.want, locker.ErrNotHeld)
						wantOp(t, err, what)
					}
				}
				lock.Hold().MarkLost(errors.New("another cause"))
				wantError(t, "Err", lock.Err(), tt.want)
				if len(l.asked()) != sent || !closed(lock.Done()) {
					t.Errorf("sent %v after the end; Done closed: %v", l.asked()[sent:], closed(lock.Done()))
				}
			})
		})
	}
}

// An answer that comes after the end changes nothing: neither a good one nor a bad one.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	good := lease.Term{Deadline: time.Now().Add(1000 * time.Hour), Fence: 9}
	ops := map[string]func(context.Context, *locker.Lock) error{
		"renew":     func(ctx context.Context, lock *locker.Lock) error { return lock.Renew(ctx, time.Hour) },
		"downgrade": func(ctx context.Context, lock *locker.Lock) error { return lock.Downgrade(ctx) },
	}
	ends := map[string]struct {
		end    func(*testing.T, *locker.Lock)
		want   error
		unseen bool // nobody looks at the lock before the answer comes
	}{
		"deadline": {func(*testing.T, *locker.Lock) { advance(time.Minute) }, locker.ErrLost, false},
		"unseen":   {func(*testing.T, *locker.Lock) { advance(time.Minute) }, locker.ErrLost, true},
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
						if !end.unseen && !closed(lock.Done()) {
							t.Fatal("Done waits for the answer")
						}
						close(free)
						err := <-got
						synctest.Wait()
						wantError(t, op, err, end.want)
						wantOp(t, err, op)
						wantError(t, "Err", lock.Err(), end.want)
						if !closed(lock.Done()) || !lock.Deadline().Equal(deadline) || lock.Mode() != locker.Exclusive || lock.Fence() != 0 {
							t.Errorf("the late answer changed it: %v, until %v", lock, lock.Deadline())
						}
					})
				})
			}
		}
	}
}

func TestConvert(t *testing.T) {
	t.Parallel()
	l := &fakeLease{}
	lock := hold(t, l, time.Minute)
	wantError(t, "Downgrade", lock.Downgrade(t.Context()))
	if lock.Mode() != locker.Shared {
		t.Errorf("mode %v after Downgrade", lock.Mode())
	}
	l.answer = func(context.Context, lease.Op) (lease.Term, error) {
		return lease.Term{}, &locker.ContentionError{Name: "a"}
	}
	err := lock.Upgrade(t.Context())
	wantError(t, "Upgrade", err, locker.ErrNotAcquired)
	wantOp(t, err, "upgrade")
	if lock.Mode() != locker.Shared || lock.Err() != nil {
		t.Errorf("%v after a refused upgrade, want it shared and held", lock)
	}
	l.answer = nil
	wantError(t, "Upgrade", lock.Upgrade(t.Context()))
	want := []lease.Op{
		{Kind: lease.OpConvert, Mode: locker.Shared}, {Kind: lease.OpConvert, Mode: locker.Exclusive}, {Kind: lease.OpConvert, Mode: locker.Exclusive},
	}
	if got := l.asked(); lock.Mode() != locker.Exclusive || !slices.Equal(got, want) {
		t.Errorf("mode %v, asked %v; want %v", lock.Mode(), got, want)
	}
}

func TestMarkLost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause error
		want  []error
		text  string
	}{
		"no cause":              {nil, []error{locker.ErrLost}, ""},
		"a cause":               {io.EOF, []error{locker.ErrLost, io.EOF}, ": EOF"},
		"a cause that is loss":  {errors.Join(io.EOF, locker.ErrLost), []error{locker.ErrLost, io.EOF}, ": EOF\nlock was lost"},
		"loss itself":           {locker.ErrLost, []error{locker.ErrLost}, ""},
		"a cause that is ended": {locker.ErrNotHeld, []error{locker.ErrLost}, ""},
	} {
		l := &fakeLease{}
		lock := hold(t, l, time.Minute)
		lock.Hold().MarkLost(tt.cause)
		wantError(t, name, lock.Err(), append(tt.want, locker.ErrNotHeld)...)
		tt.text = `holdfast: lock "a" was lost` + tt.text
		if lock.Err().Error() != tt.text || len(l.asked()) != 0 {
			t.Errorf("%s: Err %q, asked %v; want %q and nothing asked", name, lock.Err(), l.asked(), tt.text)
		}
	}
}

func TestWrapLease(t *testing.T) {
	t.Parallel()
	for _, none := range []*locker.Lock{nil, {}} { // as a test double may return
		none.Hold().Wrap(func(inner lease.Lease) lease.Lease {
			if inner != nil {
				t.Errorf("the lease of no lock is %v", inner)
			}
			return inner
		})
	}
	inner := &fakeLease{}
	lock := hold(t, inner, time.Minute)
	var seen []string
	for _, name := range []string{"inner", "outer"} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			lock.Hold().Wrap(func(next lease.Lease) lease.Lease {
				_, _, _ = lock.Owner(), lock.Deadline(), lock.Err() // a wrapper may ask the lock
				return leaseFunc(func(ctx context.Context, op lease.Op) (lease.Term, error) {
					seen = append(seen, name)
					return next.Do(ctx, op)
				})
			})
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the wrapper waits for the lock for ever")
		}
	}
	wantError(t, "Renew", lock.Renew(t.Context(), 0))
	wantError(t, "Release", lock.Release(t.Context()))
	if want := []string{"outer", "inner", "outer", "inner"}; !slices.Equal(seen, want) || len(inner.asked()) != 2 {
		t.Errorf("through %v, asked %v; want the last wrapper first", seen, inner.asked())
	}
}

type leaseFunc func(context.Context, lease.Op) (lease.Term, error)

func (f leaseFunc) Do(ctx context.Context, op lease.Op) (lease.Term, error) { return f(ctx, op) }

package locker_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
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
		h.Trace(t.Context(), (&recorder{}).trace(""))
		h.WrapContext(func(context.Context) context.Context { t.Error("called"); return nil })
		h.Wrap(func(inner lease.Lease) lease.Lease {
			if inner != nil {
				t.Errorf("its lease is %v", inner)
			}
			return inner
		})
		check.Error(t, "Renew of its Hold", h.Renew(t.Context()), locker.ErrNotHeld)
		if source := h.Source(); source != (locktrace.Source{}) || h.Disown() || h.Forgotten() {
			t.Errorf("it comes from %+v, can be disowned or was forgotten", source)
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	const ttl = time.Minute
	in := func(d time.Duration) func() lease.Term {
		return func() lease.Term { return lease.Term{Deadline: time.Now().Add(d)} }
	}
	never := func() lease.Term { return lease.Term{} }
	type test struct {
		term   func() lease.Term
		err    error
		want   []error       // what Renew's error matches
		left   time.Duration // until Deadline, a second after the acquire; negative: for ever
		ended  []error       // what Err matches
		fenced int64
	}
	check.EachInFakeTime(t, map[string]test{
		"extended":         {term: in(ttl), left: ttl},
		"extended by more": {term: in(time.Hour), left: time.Hour},
		"never shortened":  {term: in(time.Second), left: ttl - time.Second},
		"in the past":      {term: in(-time.Hour), left: ttl - time.Second},
		"without end":      {term: never, left: -1},
		"unknown":          {term: in(ttl), err: locker.ErrUnknownOutcome, want: []error{locker.ErrUnknownOutcome}, left: ttl - time.Second},
		"failed":           {term: never, err: io.EOF, want: []error{io.EOF}, left: ttl - time.Second},
		"unsupported":      {term: never, err: errors.ErrUnsupported, want: []error{errors.ErrUnsupported}, left: ttl - time.Second},
		"cancelled":        {term: never, err: context.Canceled, want: []error{context.Canceled}, left: ttl - time.Second},
		"not held": {
			term: in(ttl), err: locker.ErrNotHeld, left: ttl - time.Second,
			want: []error{locker.ErrLost, locker.ErrNotHeld}, ended: []error{locker.ErrLost},
		},
		"lost, and why": {
			term: in(ttl), err: errors.Join(locker.ErrLost, io.EOF), left: ttl - time.Second,
			want: []error{locker.ErrLost, io.EOF}, ended: []error{locker.ErrLost, io.EOF},
		},
		"not held, and why": {
			term: in(ttl), err: errors.Join(locker.ErrNotHeld, io.EOF), left: ttl - time.Second,
			want: []error{locker.ErrLost, io.EOF}, ended: []error{locker.ErrLost, io.EOF},
		},
		"fence raised":        {term: func() lease.Term { return lease.Term{Fence: 9} }, left: -1, fenced: 9},
		"fence never lowered": {term: func() lease.Term { return lease.Term{Fence: 2} }, left: -1, fenced: 5},
	}, func(t *testing.T, tt test) {
		type key struct{}
		l := &fakeLease{answer: func(ctx context.Context, _ lease.Op) (lease.Term, error) {
			if ctx.Value(key{}) != "v" {
				t.Error("the lease was not asked with the caller's ctx")
			}
			return tt.term(), tt.err
		}}
		lock := locker.NewLock(t.Context(), lease.Grant{
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
		check.Error(t, name, lock.Err(), append(tt.want, locker.ErrNotHeld)...)
		tt.text = `holdfast: lock "a" was lost` + tt.text
		if lock.Err().Error() != tt.text || len(l.asked()) != 0 {
			t.Errorf("%s: Err %q, asked %v; want %q and nothing asked", name, lock.Err(), l.asked(), tt.text)
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
			_, _, _ = lock.Owner(), lock.Deadline(), lock.Err() // a wrapper may ask the lock
			return leaseFunc(func(ctx context.Context, op lease.Op) (lease.Term, error) {
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

type leaseFunc func(context.Context, lease.Op) (lease.Term, error)

func (f leaseFunc) Do(ctx context.Context, op lease.Op) (lease.Term, error) { return f(ctx, op) }

package locker_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// A valid name has the keys of a lock in its slot, and none of them is a valid name.
func TestValidateName(t *testing.T) {
	t.Parallel()
	kib := strings.Repeat("n", 1024)
	tests := []struct {
		name string
		ok   bool
	}{
		{"", false}, {"a", true}, {" ", true}, {kib, true}, {kib + "n", false}, {strings.Repeat("n", 1<<20), false},

		// Bytes, not text.
		{"\x00", true}, {"a\nb", true}, {"\xff\xfe", true}, {"é", true}, {strings.Repeat("é", 512), true}, {strings.Repeat("é", 513), false},

		// Names that a key of ours could be, or without a slot shared with one.
		{"x:fence", false}, {"x:wake", false}, {":fence", false}, {"{x}:wake", false}, {"x:fenced", true}, {"x:FENCE", true},
		{":fence:x", true}, {"{}x", false}, {"a}b", false}, {"}", false}, {"{}", false}, {"{a", true}, {"{", true}, {"{a}b", true},
		{"}{a}", true}, {"{}{a}", false}, {"a{b}c{d}", true}, {"{{a}}", true}, {"a\x00", true},
	}
	for _, tt := range tests {
		err := locker.Request{Name: tt.name}.Validate()
		short := tt.name[:min(len(tt.name), 20)]
		if tt.ok {
			check.Error(t, short, err)
			for _, suffix := range []string{sibling.FenceSuffix, sibling.WakeSuffix} {
				key, has := sibling.Of(tt.name, suffix)
				check.Equal(t, "a key in its slot for "+suffix, has, true)
				wantInvalid(t, key, locker.Request{Name: key}.Validate())
			}
			continue
		}
		wantInvalid(t, short, err)
		if ie, ok := errors.AsType[*locker.InvalidError](err); ok && (ie.What != "Request.Name" || len(ie.Error()) > 300) {
			t.Errorf("%q: error of %d bytes about %s, want a short one about Request.Name", short, len(ie.Error()), ie.What)
		}
	}
}

func TestValidateTTL(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for _, tt := range []struct {
		ttl time.Duration
		ok  bool
	}{
		{0, true}, {-1, false}, {-time.Hour, false}, {1, false}, {time.Millisecond - 1, false}, {time.Millisecond, true},
		{time.Millisecond + 1, true}, {30 * time.Second, true}, {24 * day, true}, {24*day + 1, false}, {365 * day, false},
		{math.MaxInt64, false}, {math.MinInt64, false},
	} {
		l := &fakeLease{}
		lock := hold(t, l, time.Minute)
		errs := map[string]error{
			"Request.Validate": locker.Request{Name: "a", TTL: tt.ttl}.Validate(),
			"Lock.Renew":       lock.Renew(t.Context(), tt.ttl),
		}
		for what, err := range errs {
			if tt.ok {
				check.Error(t, what+" of "+tt.ttl.String(), err)
			} else {
				wantInvalid(t, what+" of "+tt.ttl.String(), err)
			}
		}
		if sent := len(l.asked()) == 1; sent != tt.ok {
			t.Errorf("Renew(%v) was sent: %v, want %v", tt.ttl, sent, tt.ok)
		}
		if lock.Err() != nil {
			t.Errorf("Renew(%v) ended the lock: %v", tt.ttl, lock.Err())
		}
	}
}

func TestValidateRest(t *testing.T) {
	t.Parallel()
	handle := func(name string, mode locker.Mode) locker.Handle {
		return locker.NewHandle(lease.HoldInfo{Name: name, Mode: mode, Token: secret})
	}
	kib := strings.Repeat("o", 1024)
	type test struct {
		req  locker.Request
		what string // "": valid
	}
	check.Each(t, map[string]test{
		//realtime:ok a value, no lease
		"all that there is": {locker.Request{Mode: locker.Shared, TTL: time.Second, MaxWait: 1, NoWait: true, Fenced: true, Owner: kib, Note: kib}, ""},
		"mode 2":            {locker.Request{Mode: 2}, "Request.Mode"},
		"mode 7":            {locker.Request{Mode: 7}, "Request.Mode"},
		"mode 255":          {locker.Request{Mode: 255}, "Request.Mode"},
		"permits":           {locker.Request{Permits: math.MaxInt}, ""},
		"negative permits":  {locker.Request{Permits: -1}, "Request.Permits"},
		"MinHold":           {locker.Request{MinHold: 24 * 24 * time.Hour}, ""},
		//realtime:ok a value, no lease
		"MinHold as long as TTL": {locker.Request{TTL: time.Second, MinHold: time.Second}, ""},
		//realtime:ok a value, no lease
		"MinHold longer than TTL": {locker.Request{TTL: time.Second, MinHold: time.Second + 1}, "Request.MinHold"},
		"negative MinHold":        {locker.Request{MinHold: -1}, "Request.MinHold"},
		"short MinHold":           {locker.Request{MinHold: time.Millisecond - 1}, "Request.MinHold"},
		"long MinHold":            {locker.Request{MinHold: 24*24*time.Hour + 1}, "Request.MinHold"},
		"negative MaxWait":        {locker.Request{MaxWait: -1}, "Request.MaxWait"},
		"long owner":              {locker.Request{Owner: kib + "o"}, "Request.Owner"},
		"long note":               {locker.Request{Note: kib + "n"}, "Request.Note"},
		"resume":                  {locker.Request{Resume: handle("a", locker.Exclusive)}, ""},
		"resume of another name":  {locker.Request{Resume: handle("b", locker.Exclusive)}, "Request.Resume"},
		"resume of another mode":  {locker.Request{Resume: handle("a", locker.Shared)}, "Request.Resume"},
		"resume of nothing":       {locker.Request{Resume: handle("b", locker.Shared), Mode: locker.Shared}, "Request.Resume"},
		"zero handle":             {locker.Request{Resume: locker.NewHandle(lease.HoldInfo{Name: "b"})}, ""},
	}, func(t *testing.T, tt test) {
		tt.req.Name = "a"
		err := tt.req.Validate()
		if tt.what == "" {
			check.Error(t, "Validate", err)
			return
		}
		wantInvalid(t, "Validate", err)
		if ie, ok := errors.AsType[*locker.InvalidError](err); ok && ie.What != tt.what {
			t.Errorf("error about %s, want %s", ie.What, tt.what)
		}
	})
}

// The error of a call names the bad argument and the operation, and nothing is sent.
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
		{"release", "Handle.Release ctx: nil", h.Release(none, l)},
		{"release", "Handle.Release locker: nil", h.Release(ctx, nil)},
		{"release", "Handle.Release handle: the zero Handle", zero.Release(ctx, l)},
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
	err := lock.Release(none) // is terminal too
	wantInvalid(t, "Release", err)
	wantOp(t, err, "release")
	if state, _ := l.Inspect(ctx, "a"); state.Held || !errors.Is(lock.Err(), locker.ErrReleased) {
		t.Errorf("Err %v after a Release without a ctx, held: %v; want it released", lock.Err(), state.Held)
	}
	for op, err := range map[string]error{
		"inspect": inspect(ctx, funcOf(l), "a"), "break": end(ctx, funcOf(l), "a"), "watch": errors.Unwrap(watch(ctx, funcOf(l), "a", 0)),
	} {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s of a Locker that cannot: %v", op, err)
		}
	}
}

// An ended ctx stops these calls.
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
	check.Error(t, "ReleaseHandle that fails", lock.Handle().Release(ctx, l), locker.ErrUnknownOutcome)
	check.Error(t, "ReleaseHandle", lock.Handle().Release(ctx, l))
}

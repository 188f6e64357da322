package locker_test

import (
	"encoding/base64"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

var handleForm = regexp.MustCompile(`^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$`)

func TestHandleRoundTrip(t *testing.T) {
	t.Parallel()
	kib := strings.Repeat("k", 1024)
	check.Each(t, map[string]lease.HoldInfo{
		"least":   {Name: "a", Token: "t"},
		"most":    {Name: kib, Owner: kib, Token: strings.Repeat("t", 1<<20), Mode: locker.Shared, TTL: locker.MaxTTL, Fence: math.MaxInt64},
		"usual":   {Name: "job", Owner: "worker-1", Token: lease.NewToken(), TTL: 30 * time.Second, Fence: 1},
		"minimum": {Name: "job", Token: "t", TTL: time.Minute, MinHold: 30 * time.Second},
		//realtime:ok no time passes
		"no text": {Name: "\xff\xfe\x00\n\"\\", Owner: "\x80", Token: "\xc3(\x00|", TTL: time.Millisecond},
		//realtime:ok no time passes
		"scripts": {Name: "замок:鍵", Owner: "é", Token: "t\u2028<>&", TTL: time.Millisecond + 1},
	}, func(t *testing.T, g lease.HoldInfo) {
		g.Deadline = time.Now() // not in the text
		text := locker.NewHandle(g).Encode()
		if !handleForm.MatchString(text) {
			t.Errorf("Encode: %.80q, want letters, digits, -, _ and one dot", text)
		}
		h, err := locker.ParseHandle(text)
		check.Must(t, err)
		g.Deadline = time.Time{}
		if h.Info() != g {
			t.Error("the facts changed on the way")
		}
		if h.Name() != g.Name || h.Owner() != g.Owner || h.Mode() != g.Mode || h.Fence() != g.Fence || h.IsZero() {
			t.Errorf("%v: not what was encoded", h)
		}
		if h.Encode() != text {
			t.Error("it encodes to another text")
		}
	})
}

func TestZeroHandle(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]locker.Handle{
		"zero": {}, "no token": locker.NewHandle(lease.HoldInfo{Name: "a"}), "of no lock": (*locker.Lock)(nil).Handle(), "of the zero Lock": new(locker.Lock).Handle(),
	} {
		if !h.IsZero() || h.Encode() != "" || h.Fence() != 0 || h.Info().Token != "" {
			t.Errorf("%s: %v, encoded %q", name, h, h.Encode())
		}
	}
	_, err := locker.ParseHandle("")
	wantInvalid(t, "ParseHandle of nothing", err)
}

// encoded is a forged handle.
func encoded(json string) string {
	return "holdfast1." + base64.RawURLEncoding.EncodeToString([]byte(json))
}

func TestParseHandleRefuses(t *testing.T) {
	t.Parallel()
	//realtime:ok no time passes
	valid := locker.NewHandle(lease.HoldInfo{Name: "a", Token: secret, TTL: time.Second}).Encode()
	body := strings.TrimPrefix(valid, "holdfast1.")
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	a, tok := b64("a"), b64(secret)
	check.Each(t, map[string]string{
		"no form":               body,
		"another form":          "holdfast2." + body,
		"the form alone":        "holdfast1.",
		"one byte short":        valid[:len(valid)-1],
		"space before":          " " + valid,
		"newline within":        valid[:20] + "\n" + valid[20:],
		"other alphabet":        "holdfast1.+/+/",
		"no JSON":               encoded("x"),
		"null":                  encoded("null"),
		"no token":              encoded(`{"Name":"` + a + `","Owner":"","Token":""}`),
		"no name":               encoded(`{"Name":"","Owner":"","Token":"` + tok + `"}`),
		"no owner":              encoded(`{"Name":"` + a + `","Token":"` + tok + `"}`),
		"name of a key of ours": encoded(`{"Name":"` + b64("a:fence") + `","Owner":"","Token":"` + tok + `"}`),
		"long name":             encoded(`{"Name":"` + b64(strings.Repeat("n", 1025)) + `","Owner":"","Token":"` + tok + `"}`),
		"long owner":            encoded(`{"Name":"` + a + `","Owner":"` + b64(strings.Repeat("n", 1025)) + `","Token":"` + tok + `"}`),
		"name that is text":     encoded(`{"Name":"not base64!","Owner":"","Token":"` + tok + `"}`),
		"negative fence":        encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","Fence":-1}`),
		"huge fence":            encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","Fence":9223372036854775808}`),
		"unknown mode":          encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","Mode":2}`),
		"mode that wraps round": encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","Mode":256}`),
		"short TTL":             encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","TTL":1}`),
		"long TTL":              encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","TTL":2073600000000001}`),
		"unknown field":         encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `","Node":1}`),
		"field twice":           encoded(`{"Name":"` + b64("b") + `","Name":"` + a + `","Owner":"","Token":"` + tok + `"}`),
		"space in JSON":         encoded(`{ "Name":"` + a + `","Owner":"","Token":"` + tok + `"}`),
		"deep nesting":          encoded(strings.Repeat("[", 100_000)),
	}, func(t *testing.T, text string) {
		h, err := locker.ParseHandle(text)
		wantInvalid(t, "ParseHandle", err)
		check.Equal(t, "Handle beside the error", h, locker.Handle{})
		if err != nil && strings.Contains(err.Error(), body[:10]) {
			t.Errorf("error %q repeats the text, which holds the token", err)
		}
	})
	if _, err := locker.ParseHandle(encoded(`{"Name":"` + a + `","Owner":"","Token":"` + tok + `"}`)); err != nil {
		t.Errorf("the form that the cases above spoil is refused itself: %v", err)
	}
}

// Exactly the output of Encode is accepted.
func FuzzParseHandle(f *testing.F) {
	f.Add("")
	f.Add("holdfast1.e30")
	f.Add(locker.NewHandle(lease.HoldInfo{Name: "a", Token: "t"}).Encode())
	f.Add(locker.NewHandle(lease.HoldInfo{Name: "\xff", Owner: "o", Token: "t", Mode: locker.Shared, TTL: time.Hour, Fence: 1}).Encode())
	f.Fuzz(func(t *testing.T, text string) {
		h, err := locker.ParseHandle(text)
		if err != nil {
			wantInvalid(t, "ParseHandle", err)
			return
		}
		if h.Encode() != text {
			t.Errorf("%q is accepted, and encodes to %q", text, h.Encode())
		}
		if err := (locker.Request{Name: h.Name(), Mode: h.Mode(), Resume: h}).Validate(); err != nil {
			t.Errorf("%q is accepted, and cannot be resumed: %v", text, err)
		}
	})
}

// For strategies made of other Lockers.

// tokened is a lease with a changing token.
type tokened struct {
	fakeLease
	token string
}

func (l *tokened) Token() string { return l.token }

func TestHandleAsksTheLease(t *testing.T) {
	t.Parallel()
	inner := &tokened{token: "first"}
	// A strategy may wrap the Lease of another one before it makes the Lock.
	lock := locker.NewLock(t.Context(), lease.HoldInfo{Name: "a", Token: "granted", TTL: time.Minute, Fence: 7}, transparent{inner})
	wantToken := func(when, want string) {
		t.Helper()
		if g := lock.Handle().Info(); g.Token != want || g.Name != "a" || g.Fence != 7 {
			t.Errorf("%s the handle is of %q with token %q, want %q", when, g.Name, g.Token, want)
		}
	}
	wantToken("at first", "first")
	inner.token = "second"
	wantToken("after a change", "second")
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return transparent{transparent{l}} })
	wantToken("behind middleware", "second")
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease { return opaque{l} })
	wantToken("behind what does not unwrap", "second")
}

// funcOf hides the wrapped Locker: the hold is resumed first.
func funcOf(l locker.Locker) locker.Locker { return locker.Func(l.Acquire) }

func TestReleaseHandle(t *testing.T) {
	t.Parallel()
	check.Each(t, map[string]func(locker.Locker) locker.Locker{
		"itself":           func(l locker.Locker) locker.Locker { return l },
		"behind a wrap":    func(l locker.Locker) locker.Locker { return wrapping{l} },
		"by way of Resume": funcOf,
	}, func(t *testing.T, around func(locker.Locker) locker.Locker) {
		memory := lockertest.New()
		l := around(memory)
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
		check.Error(t, "ReleaseHandle", lock.Handle().Release(t.Context(), l))
		if state, _ := memory.Inspect(t.Context(), "a"); state.Held {
			t.Error("it is still held")
		}
		check.Error(t, "Renew", lock.Renew(t.Context(), 0), locker.ErrLost)

		next := locker.Must(l.Acquire(t.Context(), locker.Request{Name: "a"}))
		err := lock.Handle().Release(t.Context(), l)
		check.Error(t, "ReleaseHandle of a hold that has ended", err, locker.ErrNotHeld)
		wantNotError(t, "ReleaseHandle of a hold that has ended", err, locker.ErrLost)
		if oe, ok := errors.AsType[*locker.OpError](err); !ok || oe.Name != "a" {
			t.Errorf("%v, want an OpError of a", err)
		}
		check.Error(t, "Release of the next holder", next.Release(t.Context()))
	})
}

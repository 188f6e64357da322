package lease_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/callchain"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestWaiting(t *testing.T) {
	t.Parallel()
	if w, ok := lease.WaitingFrom(t.Context()); ok {
		t.Errorf("nobody waits, got %+v", w)
	}
	waiting := lease.Waiting{ID: lease.NewToken(), Since: time.Now(), Subscribed: true}
	derived, cancel := context.WithCancel(lease.WithWaiting(t.Context(), waiting))
	cancel()
	if got, ok := lease.WaitingFrom(derived); !ok || got != waiting {
		t.Errorf("got %+v, want %+v", got, waiting)
	}
	if _, waits := lease.WaitingFrom(lease.WithWaiting(derived, lease.Waiting{})); waits {
		t.Error("somebody waits in a ctx without")
	}
	if lease.WithWaiting(t.Context(), lease.Waiting{}) != t.Context() {
		t.Error("a ctx in which nobody waits was wrapped")
	}
	w, waits := lease.WaitingFrom(lease.WithWaiting(t.Context(), lease.Waiting{Behind: true}))
	if !w.Behind || waits {
		t.Errorf("of an attempt behind: %+v, waits: %v", w, waits)
	}
}

// wrapper is a Lease that wraps another one.
type wrapper struct{ inner lease.Lease }

func (*wrapper) Do(context.Context, lease.Op) (lease.Result, error) {
	return lease.Result{}, errors.ErrUnsupported
}
func (w *wrapper) Unwrap() lease.Lease { return w.inner }

// tokened is a Lease with a token.
type tokened struct{ wrapper }

func (*tokened) Token() string { return "token" }

func TestFind(t *testing.T) {
	t.Parallel()
	itself, first, second := &wrapper{}, &wrapper{}, &wrapper{}
	itself.inner, first.inner, second.inner = itself, second, first
	type test struct {
		l     lease.Lease
		found bool
	}
	check.Each(t, map[string]test{
		"nil":                        {nil, false},
		"itself":                     {&tokened{}, true},
		"behind two wrappers":        {&wrapper{&wrapper{&tokened{}}}, true},
		"a wrapper of nothing":       {&wrapper{}, false},
		"a wrapper of itself":        {itself, false},
		"two that wrap each other":   {first, false},
		"before a wrapper of itself": {&wrapper{&tokened{wrapper{itself}}}, true},
	}, func(t *testing.T, tt test) {
		if _, ok := lease.Find[interface{ Token() string }](tt.l); ok != tt.found {
			t.Errorf("found: %v, want %v", ok, tt.found)
		}
	})
}

// The owner set last wins. One set for a name applies to this name only.
func TestOwnerFrom(t *testing.T) {
	t.Parallel()
	all := func(owner string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return callchain.WithOwner(ctx, owner) }
	}
	under := func(name, owner string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return callchain.WithLock(ctx, name, owner, nil) }
	}
	type steps []func(context.Context) context.Context
	type test struct {
		said steps
		a, b string // the owners for names "a" and "b"; "": none
	}
	check.Each(t, map[string]test{
		"nothing":                    {nil, "", ""},
		"all":                        {steps{all("o")}, "o", "o"},
		"all twice":                  {steps{all("o"), all("p")}, "p", "p"},
		"taken away":                 {steps{all("o"), all("")}, "", ""},
		"one name":                   {steps{under("a", "o")}, "o", ""},
		"two names":                  {steps{under("a", "o"), under("b", "p")}, "o", "p"},
		"one name twice":             {steps{under("a", "o"), under("a", "p")}, "p", ""},
		"one name under all":         {steps{all("o"), under("a", "p")}, "p", "o"},
		"all under one name":         {steps{under("a", "p"), all("o")}, "o", "o"},
		"taken away under one name":  {steps{under("a", "p"), all("")}, "", ""},
		"one name after taking away": {steps{all("o"), all(""), under("a", "p")}, "p", ""},
		"names around another":       {steps{under("a", "o"), under("b", "p"), under("b", "q")}, "o", "q"},
	}, func(t *testing.T, tt test) {
		ctx := t.Context()
		for _, say := range tt.said {
			ctx = say(ctx) //nolint:fatcontext // nesting is the point
		}
		for name, want := range map[string]string{"a": tt.a, "b": tt.b} {
			if got, ok := lease.OwnerFrom(ctx, name); got != want || ok != (want != "") {
				t.Errorf("OwnerFrom(%q) = %q, %v; want %q", name, got, ok, want)
			}
		}
	})
}

func TestNewToken(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`)
	seen := map[string]bool{}
	for range 1000 {
		token := lease.NewToken()
		if !form.MatchString(token) || len(token) != lease.TokenLen || seen[token] {
			t.Fatalf("token %q, want 22 fresh letters, digits, - or _", token)
		}
		seen[token] = true
	}
	// Every place takes many values: of the 128 bits only two are fixed, in the last place.
	for place := range lease.TokenLen {
		values := map[byte]bool{}
		for token := range seen {
			values[token[place]] = true
		}
		if most := 64; place == lease.TokenLen-1 && len(values) != 4 || place < lease.TokenLen-1 && len(values) < most-8 {
			t.Errorf("place %d takes %d values", place, len(values))
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for value, want := range map[fmt.Stringer]string{
		lease.Mode(0): "exclusive", lease.Mode(1): "shared", lease.Mode(7): "Mode(7)",
		lease.OpRenew: "renew", lease.OpRelease: "release", lease.OpConvert: "convert", lease.OpRaiseFence: "raise fence",
		lease.OpKind(0): "unknown operation", lease.OpKind(9): "unknown operation",
	} {
		check.Equal(t, fmt.Sprintf("%T", value), value.String(), want)
	}
}

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestChain(t *testing.T) {
	t.Parallel()
	var order []string
	mark := func(name string) locker.Middleware {
		return func(next locker.Locker) locker.Locker {
			return locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				order = append(order, name)
				lock, err := next.Acquire(ctx, req)
				order = append(order, "/"+name)
				return lock, err
			})
		}
	}
	failed := errors.New("bottom")
	bottom := locker.Func(func(context.Context, locker.Request) (*locker.Lock, error) {
		order = append(order, "bottom")
		return nil, failed
	})
	acquire := func(want string, l locker.Locker) error {
		order = nil
		_, err := l.Acquire(t.Context(), locker.Request{Name: "a"})
		check.Equal(t, "order", strings.Join(order, " "), want)
		return err
	}
	check.Error(t, "Acquire", acquire("outer middle inner bottom /inner /middle /outer", locker.Chain(bottom, mark("outer"), mark("middle"), mark("inner"))), failed)
	check.Error(t, "without middleware", acquire("bottom", locker.Chain(bottom)), failed)
	err := acquire("outer /outer", locker.Chain(bottom, mark("outer"), nil, mark("inner")))
	wantInvalid(t, "Acquire", err)
	if got, want := err.Error(), `holdfast: acquire "a": invalid Chain middleware 1: nil; allowed: a Middleware`; got != want {
		t.Errorf("with a nil middleware: %q, want %q", got, want)
	}
}

func TestMust(t *testing.T) {
	t.Parallel()
	check.Equal(t, "Must", locker.Must(7, nil), 7)
	failed := errors.New("bad")
	check.Panics(t, failed, func() { locker.Must(7, failed) })
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for value, want := range map[fmt.Stringer]string{
		locker.Exclusive: "exclusive", locker.Shared: "shared", locker.Mode(7): "Mode(7)",
		lease.OpRenew: "renew", lease.OpRelease: "release", lease.OpConvert: "convert", lease.OpRaiseFence: "raise fence",
		lease.OpKind(0): "unknown operation", lease.OpKind(9): "unknown operation",
	} {
		if got := value.String(); got != want {
			t.Errorf("%T: %q, want %q", value, got, want)
		}
	}
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
	// Every place takes many values: nothing of the 128 bits is fixed but two in the last place.
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

// What was said last wins, and a Lock's ctx speaks for its own name only.
func TestOwnerFrom(t *testing.T) {
	t.Parallel()
	all := func(owner string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return locker.WithOwner(ctx, owner) }
	}
	under := func(name, owner string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context {
			lock := locker.NewLock(ctx, lease.Grant{Name: name, Owner: owner, Token: secret}, &fakeLease{})
			ctx, cancel := lock.Context(ctx)
			t.Cleanup(cancel)
			return ctx
		}
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
			ctx = say(ctx) //nolint:fatcontext // how deep it goes is the point
		}
		for name, want := range map[string]string{"a": tt.a, "b": tt.b} {
			if got, ok := lease.OwnerFrom(ctx, name); got != want || ok != (want != "") {
				t.Errorf("OwnerFrom(%q) = %q, %v; want %q", name, got, ok, want)
			}
		}
	})
}

func TestOwnerOfALock(t *testing.T) {
	t.Parallel()
	given := locker.NewLock(t.Context(), lease.Grant{Name: "a", Owner: "me", Token: secret}, &fakeLease{})
	check.Equal(t, "Owner", given.Owner(), "me")
	one, other := hold(t, &fakeLease{}, time.Minute), hold(t, &fakeLease{}, time.Minute)
	owner := one.Owner()
	if owner == "" || owner == secret || owner == other.Owner() {
		t.Errorf("owners %q and %q where none is given, want two random ones that are no tokens", owner, other.Owner())
	}
	ctx, cancel := one.Context(t.Context())
	defer cancel()
	carried, _ := lease.OwnerFrom(ctx, "a")
	if one.Owner() != owner || one.Handle().Owner() != owner || carried != owner {
		t.Errorf("owner %q, then %q, %q in its handle, %q in its ctx; want one", owner, one.Owner(), one.Handle().Owner(), carried)
	}
}

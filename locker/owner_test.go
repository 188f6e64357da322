package locker_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

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

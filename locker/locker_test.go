package locker_test

import (
	"context"
	"errors"
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

func TestOwnerOfALock(t *testing.T) {
	t.Parallel()
	given := locker.NewLock(t.Context(), lease.HoldInfo{Name: "a", Owner: "me", Token: secret}, &fakeLease{})
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

package locker_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

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

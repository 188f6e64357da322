package locker_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

type tokenLease struct {
	fakeLease
	token string
}

func (l *tokenLease) Token() string { return l.token }

type outerLease struct{ lease.Lease }

func (l outerLease) Unwrap() lease.Lease { return l.Lease }

// A strategy may wrap the Lease of another one before it makes the Lock.
func TestTokenOfAWrappedLease(t *testing.T) {
	t.Parallel()
	inner := &tokenLease{token: "first"}
	lock := locker.NewLock(t.Context(), lease.HoldInfo{Name: "a", Token: "first"}, outerLease{inner})
	inner.token = "second"
	check.Equal(t, "token", lock.Handle().Info().Token, "second")
}

package keylock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

func TestPrintingALeaseNeverShowsTheToken(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{Note: "nightly"})
		random := lock.Handle().Info().Token[:lease.TokenLen]
		l := leaseOf(lock)
		for _, v := range []any{l, struct{ lease.Lease }{l}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
				if text := fmt.Sprintf(verb, v); strings.Contains(text, random) {
					t.Errorf("%s of a %T shows the token: %s", verb, v, text)
				}
			}
		}
		if text := fmt.Sprint(l); !strings.HasPrefix(text, `lease of "`+lock.Name()+`", strategy `) {
			t.Errorf("it is printed as %s", text)
		}
	})
}

// Whoever knows the owner of a reentrant lock can enter it.
func TestRefusedResumeShowsNoOwner(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		lock := b.acquire(t, locker.Request{Owner: "secret one"})
		_, err := b.Acquire(t.Context(), locker.Request{Name: lock.Name(), Owner: "secret two", Resume: lock.Handle()})
		if err != nil && (!errors.Is(err, locker.ErrInvalid) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("Resume for another owner: %v", err)
		}
	})
}

package keylock_test

import (
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

package retry_test

import (
	"math/rand/v2"
	"testing"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/internal/contend"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Readers and writers in real time and in parallel, many of them giving up at any instant: nobody
// holds beside a writer, nobody is forgotten in a queue, and nothing stays behind.
func TestGivingUpAtAnyInstant(t *testing.T) {
	t.Parallel()
	for in, ordered := range map[string]bool{"in one line": false, "in two lines": true} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.ordered = ordered
			contend.GiveUp(t, wrap(t, s, retry.Config{}), func() locker.Request {
				req := locker.Request{Name: name}
				if rand.N(3) == 0 {
					req.Mode = locker.Shared
				}
				if rand.N(8) == 0 {
					req.Owner = "me"
				}
				return req
			})
			check.Eventually(t, "no subscription is left", func() bool { return s.open() == 0 })
		})
	}
}

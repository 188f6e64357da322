//realtime:ok each test runs in a bubble, by run of tools_test.go

package single_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Contract 9: neither a shorter renewal nor one of unknown outcome changes the lease.
func TestRenew(t *testing.T) {
	run(t, single.Config{AttemptTimeout: time.Second}, func(t *testing.T, b bench) {
		lock := b.acquire(t, locker.Request{TTL: 10 * time.Second, Fenced: true})
		deadline := lock.Deadline()

		check.OK(t, lock.Renew(t.Context(), time.Second))
		if !lock.Deadline().Equal(deadline) || b.m.TTL(name) != 10*time.Second {
			t.Errorf("a shorter renew left Deadline %v and TTL %v", lock.Deadline(), b.m.TTL(name))
		}

		b.drv.Then(fault{Hang: true}, fault{Hang: true}, fault{Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		err := lock.Renew(ctx, 0)
		check.Is(t, err, context.DeadlineExceeded)
		only(t, err, locker.ErrUnknownOutcome, locker.ErrNotHeld)
		if !lock.Deadline().Equal(deadline) || lock.Err() != nil {
			t.Errorf("a renew of unknown outcome left Deadline %v, error %v", lock.Deadline(), lock.Err())
		}

		b.drv.Then(fault{Lose: true})
		check.OK(t, lock.Renew(t.Context(), 0))
		check.AtLeast(t, "time until the Deadline", time.Until(lock.Deadline()), 9800*time.Millisecond)
	})
}

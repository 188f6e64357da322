package keylock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// A resume never shortens the lease at the server, even if it is longer than the handle's TTL. The
// new Lock counts on that TTL alone, even if the lease was shorter.
func TestResumeKeepsTheLongerLease(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		for _, renewed := range []time.Duration{0, time.Hour} {
			lock := locker.Must(b.Acquire(t.Context(), locker.Request{Name: name, TTL: 30 * time.Second}))
			wantNone(t, lock.Renew(t.Context(), renewed))
			time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
			start := time.Now()
			resumed := locker.Must(locker.Resume(t.Context(), b, lock.Handle()))
			check.Within(t, "Deadline, less drift", resumed.Deadline().Sub(start), 29*time.Second, 30*time.Second)
			want := max(30*time.Second, renewed-10*time.Second)
			check.Within(t, "TTL at the server", b.m.TTL(name), want-time.Second, want)
			wantNone(t, resumed.Release(t.Context()))
		}
	})
}

func strategyOf(l locker.Locker) string { return lease.TraitsOf(l).Source.Strategy }

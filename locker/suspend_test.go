package locker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
)

type noLease struct{}

func (noLease) Do(context.Context, lease.Op) (lease.Term, error) { return lease.Term{}, nil }

// Timers stand still while a machine is suspended. So the wait for the end looks at the wall clock
// again and again: each eighth of the TTL, but at least each 10 s and not more often than each
// second. A suspension is a Deadline that is suddenly nearer.
func TestSuspensionIsNoticed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ttl, at, left, ends time.Duration }{
		{80 * time.Second, time.Second, 0, 10 * time.Second},                     // past the lease: found at the next look
		{80 * time.Second, time.Second, 14 * time.Second, 15 * time.Second},      // nearer: to the instant
		{80 * time.Second, 25 * time.Second, time.Second, 30 * time.Second},      // in the middle of a look
		{2 * time.Second, 100 * time.Millisecond, 0, time.Second},                // short leases: each second
		{24 * time.Hour, 0, time.Hour, time.Hour},                                // long ones: every 10 s
		{80 * time.Second, 0, 90 * time.Second, 90 * time.Second},                // and later, by a renewal
		{time.Millisecond, 0, 500 * time.Microsecond, 1 * time.Millisecond},      // shorter than any look
		{80 * time.Second, 75 * time.Second, time.Second, 80 * time.Second},      // just before the end
		{80 * time.Second, 0, 80*time.Second + 1, 80*time.Second + 1},            // one nanosecond
		{10 * time.Second, 9999 * time.Millisecond, 0, 10000 * time.Millisecond}, // just before a look
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			lock := NewLock(t.Context(), lease.Grant{Name: "a", Token: "t", TTL: tt.ttl, Deadline: start.Add(tt.ttl)}, noLease{})
			done := lock.Done()
			<-time.After(tt.at)
			lock.load().mu.Lock()
			lock.load().deadline = time.Now().Add(tt.left)
			lock.load().mu.Unlock()
			<-done
			if got := time.Since(start); got != tt.ends {
				t.Errorf("TTL %v, %v left after %v: Done closed after %v, want %v", tt.ttl, tt.left, tt.at, got, tt.ends)
			}
		})
	}
}

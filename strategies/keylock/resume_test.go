package keylock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// A resume never shortens the lease at the server, where more may be left than the handle's TTL;
// the Lock that it makes counts on that TTL alone, also where less was left.
func TestResumeKeepsTheLongerLease(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		for _, renewed := range []time.Duration{0, time.Hour} {
			lock, err := b.Acquire(t.Context(), locker.Request{Name: name, TTL: 30 * time.Second})
			wantNone(t, err)
			wantNone(t, lock.Renew(t.Context(), renewed))
			time.Sleep(10 * time.Second) //nolint:forbidigo // fake time
			start := time.Now()
			resumed, err := locker.Resume(t.Context(), b, lock.Handle())
			wantNone(t, err)
			if got := resumed.Deadline().Sub(start); got > 30*time.Second || got < 29*time.Second {
				t.Errorf("renewed for %v: the Deadline is %v from the resume; want the handle's TTL, less drift", renewed, got)
			}
			want := max(30*time.Second, renewed-10*time.Second)
			if left := b.m.TTL(name); left < want-time.Second || left > want {
				t.Errorf("renewed for %v: %v are left at the server; want %v", renewed, left, want)
			}
			wantNone(t, resumed.Release(t.Context()))
		}
	})
}

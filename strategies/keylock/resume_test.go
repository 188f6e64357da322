package keylock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A resume never shortens the lease at the server, where more may be left than the handle's TTL;
// the Lock that it makes counts on that TTL alone, also where less was left.
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

// TestTransfer checks which holds another Lock can continue: of a strategy whose value alone names
// the hold, those without an owner.
func TestTransfer(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		for what, tt := range map[string]struct {
			req  locker.Request
			want bool
		}{
			"exclusive": {locker.Request{}, strategyOf(b.Locker) == "single"},
			"an owner":  {locker.Request{Owner: "me"}, false},
		} {
			lock := b.acquire(t, tt.req)
			wantNone(t, lock.Renew(t.Context(), time.Hour))
			g, ok := leaseOf(lock).(lease.Transferable).Transfer()
			check.Equal(t, what, ok, tt.want)
			if ok && (g.Name != name || g.Token != lock.Handle().Grant().Token || g.TTL != lock.TTL() || !g.Deadline.Equal(lock.Deadline()) || g.Fence != 0) {
				t.Errorf("%s: a Grant of %v until %v, want those of %v until %v", what, g, g.Deadline, lock, lock.Deadline())
			}
			wantNone(t, lock.Release(t.Context()))
		}
	})
}

// TestNoTransferWhileClosing checks that a hold is released while its driver can still do that.
func TestNoTransferWhileClosing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drv := newClosingDriver(newBench(t).drv)
		lock := locker.Must(locker.Must(single.New(drv, single.Config{})).Acquire(t.Context(), locker.Request{Name: name}))
		for _, closing := range []bool{false, true} {
			if closing {
				drv.begin()
			}
			if _, ok := leaseOf(lock).(lease.Transferable).Transfer(); ok == closing {
				t.Errorf("closing: %v, the hold can be transferred: %v", closing, ok)
			}
		}
		wantNone(t, lock.Release(t.Context()))
	})
}

func strategyOf(l locker.Locker) string { return l.(lease.Sourced).Source().Strategy }

package keylock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/single"
)

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
			g, ok := transferOf(t, lock)
			if ok != tt.want {
				t.Errorf("%s: %v, want %v", what, ok, tt.want)
			}
			if ok && (g.Name != name || g.Token != lock.Handle().Grant().Token || g.TTL != lock.TTL() || !g.Deadline.Equal(lock.Deadline()) || g.Fence != 0) {
				t.Errorf("%s: a Grant of %v until %v, want those of %v until %v", what, g, g.Deadline, lock, lock.Deadline())
			}
			wantNone(t, lock.Release(t.Context()))
		}
	})
}

// closing is a driver whose Close has begun, if it says so.
type closing struct {
	driver.Driver
	begun *bool
}

func (closing) BeginAcquire() error { return nil }
func (closing) EndAcquire()         {}
func (c closing) Closing() bool     { return *c.begun }

// TestNoTransferWhileClosing checks that a hold is released while its driver can still do that.
func TestNoTransferWhileClosing(t *testing.T) {
	eachStrategy(t, settings{}, func(t *testing.T, b *bench) {
		var begun bool
		l := locker.Must(single.New(closing{b.drv, &begun}, single.Config{}))
		lock, err := l.Acquire(t.Context(), locker.Request{Name: name})
		wantNone(t, err)
		if _, ok := transferOf(t, lock); !ok {
			t.Error("the hold cannot be transferred")
		}
		begun = true
		if _, ok := transferOf(t, lock); ok {
			t.Error("the hold can be transferred while its driver is closing")
		}
		wantNone(t, lock.Release(t.Context()))
	})
}

func transferOf(t *testing.T, lock *locker.Lock) (g lease.Grant, ok bool) {
	t.Helper()
	lock.Hold().Wrap(func(l lease.Lease) lease.Lease {
		g, ok = l.(lease.Transferable).Transfer()
		return l
	})
	return g, ok
}

func strategyOf(l locker.Locker) string { return l.(lease.Sourced).Source().Strategy }

package keylock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// In a strict order a free lock is not kept for a waiter that stopped listening, and the first
// waiter may have it however late it tries.
func TestStrictOrderLetsAWaiterIn(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, map[string]opener{
		"single": fairLocks["single"], "reentrant": fairLocks["reentrant"],
	}, func(t *testing.T, open opener) {
		m := clients.NewMemory(t)
		l := locker.Must(open(clients.OpenMemory(t, m)))
		try := func(waits time.Duration, listens bool, id string) (*locker.Lock, error) {
			return l.Acquire(lease.WithWaiting(t.Context(), lease.Waiting{
				ID: id, Since: time.Now().Add(-waits), Subscribed: listens,
			}), locker.Request{Name: "job", TTL: time.Second})
		}
		refused := func(waits time.Duration, listens bool, id string) {
			t.Helper()
			wantIs(t, check.ErrOf(try(waits, listens, id)), locker.ErrNotAcquired)
		}
		granted := func(waits time.Duration, listens bool, id string) {
			t.Helper()
			lock := locker.Must(try(waits, listens, id))
			m.Del("{job}:waiters")
			check.Must(t, lock.Release(context.WithoutCancel(t.Context())))
		}
		first, second := lease.NewToken(), lease.NewToken()

		// The holder dies, and the first waiter, a listener, is gone too.
		_ = locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Second}))
		refused(2*time.Second, true, first)
		refused(time.Second, true, second)
		<-time.After(time.Second + time.Millisecond)
		granted(2*time.Second, true, second)

		// Both are later than the time allowed after a wake-up.
		_ = locker.Must(l.Acquire(t.Context(), locker.Request{Name: "job", TTL: time.Second}))
		refused(2*time.Second, false, first)
		refused(time.Second, false, second)
		<-time.After(time.Second + time.Millisecond)
		refused(2*time.Second, false, second) // wakes the first one
		<-time.After(600 * time.Millisecond)
		granted(3*time.Second, false, first)
	})
}

package locker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// TestAfterDoneBesideABlockedCallback checks that a callback that blocks does not keep AfterDone
// from reporting the end of the lock, however it ends.
func TestAfterDoneBesideABlockedCallback(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(lock *locker.Lock, ended *member){
		"Deadline": func(*locker.Lock, *member) { advance(time.Minute) },
		"MarkLost": func(lock *locker.Lock, _ *member) { lock.Hold().MarkLost(errors.New("revoked")) },
		"Renew": func(lock *locker.Lock, ended *member) {
			ended.err = locker.ErrNotHeld
			_ = lock.Renew(context.Background(), 0)
		},
		"Release": func(lock *locker.Lock, _ *member) { _ = lock.Release(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				free := make(chan struct{})
				ctx := locktrace.With(t.Context(), &locktrace.Trace{
					Renewed: func(context.Context, locktrace.RenewedInfo) { <-free },
				})
				var sizes []int
				m := &member{sizes: &sizes}
				lock := locker.NewLock(ctx, lease.Grant{
					Name: "n", Token: "t", TTL: time.Minute, Deadline: time.Now().Add(time.Minute),
				}, m)
				told := make(chan struct{})
				lock.AfterDone(func(error) { close(told) })
				if err := lock.Hold().Renew(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // Renewed blocks
				end(lock, m)
				synctest.Wait()
				select {
				case <-told:
				default:
					t.Errorf("AfterDone was not called; the lock's error is %v", lock.Err())
				}
				close(free)
				synctest.Wait()
				_ = lock.Release(t.Context())
			})
		})
	}
}

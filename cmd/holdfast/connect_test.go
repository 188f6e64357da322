//nolint:forbidigo // fake time
package main

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// The error of a server that never answered says for how long it was tried, and what was wrong. The
// last attempt, for which little time was left, says neither.
func TestAcquireUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := driver.NotSent(syscall.ECONNREFUSED)
		l := locker.Func(func(_ context.Context, req locker.Request) (*locker.Lock, error) {
			const dialing = 400 * time.Millisecond
			if req.MaxWait < dialing {
				time.Sleep(req.MaxWait)
				return nil, driver.NotSent(locker.ErrMaxWait)
			}
			time.Sleep(dialing)
			return nil, refused
		})
		_, err := acquire(t.Context(), l, locker.Request{Name: "a"}, 1300*time.Millisecond, func(error) {})
		if want := refused.Error() + "; tried for 1.3s"; !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		if status := operationStatus(err); status != statusUnreachable {
			t.Errorf("status %d, want %d", status, statusUnreachable)
		}
	})
}

package keylock_test

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/locker"
)

// TestRenewUnderContextOfLostLock checks that a renewal that was not sent, because its ctx ended
// with another lock, does not end this one.
func TestRenewUnderContextOfLostLock(t *testing.T) {
	t.Parallel()
	for _, strategy := range strategies {
		t.Run(strategy.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.Locker = locker.Must(strategy.new(b.drv, settings{}))
				outer, err := b.Acquire(t.Context(), locker.Request{Name: "outer"})
				wantNone(t, err)
				ctx, cancel := outer.Context(t.Context())
				defer cancel()
				lock := b.acquire(t, locker.Request{})
				outer.Hold().MarkLost(io.EOF)
				<-ctx.Done()
				if err := lock.Renew(ctx, 0); err == nil {
					t.Error("renewed under a ctx that has ended")
				}
				wantNone(t, lock.Err())
			})
		})
	}
}

package keylock_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
)

// TestReleaseUnderContextOfLostLock checks that a release whose reply does not arrive has an
// unknown outcome and is repeated in the background, also if its ctx ended because another lock was
// lost: the cause of a ctx is no answer about this lock.
func TestReleaseUnderContextOfLostLock(t *testing.T) {
	t.Parallel()
	underContextOfLostLock(t, func(t *testing.T, ctx context.Context, b *bench, lock *locker.Lock) {
		t.Helper()
		b.drv.Then(faultdriver.Fault{Err: faultdriver.ErrCut})
		err := lock.Release(ctx)
		if !errors.Is(err, locker.ErrUnknownOutcome) {
			t.Errorf("release: %v; want one that matches ErrUnknownOutcome", err)
		}
		b.wantFree(t)
	})
}

// TestRenewUnderContextOfLostLock checks that a renewal that was not sent, because its ctx ended
// with another lock, does not end this one.
func TestRenewUnderContextOfLostLock(t *testing.T) {
	t.Parallel()
	underContextOfLostLock(t, func(t *testing.T, ctx context.Context, _ *bench, lock *locker.Lock) {
		t.Helper()
		if err := lock.Renew(ctx, 0); err == nil {
			t.Error("renewed under a ctx that has ended")
		}
		wantNone(t, lock.Err())
	})
}

// underContextOfLostLock calls test for each strategy, with a lock that is held and the ctx of
// another lock that was lost.
func underContextOfLostLock(
	t *testing.T, test func(t *testing.T, ctx context.Context, b *bench, lock *locker.Lock),
) {
	t.Helper()
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
				test(t, ctx, b, lock)
			})
		})
	}
}

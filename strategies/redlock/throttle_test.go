//nolint:forbidigo // fake time
package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// TestLateAnswersAtAllNodes checks that nodes with many late answers are asked where no quorum is
// left without them.
func TestLateAnswersAtAllNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := make([]*lockertest.Locker, 5)
		nodes := make([]locker.Locker, 5)
		var k atomic.Int64
		for i := range nodes {
			inner[i] = lockertest.New()
			nodes[i] = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				if slow := int(k.Load()) % 5; i == slow || i == (slow+1)%5 {
					time.Sleep(60 * time.Millisecond) // another zone, or a lost packet
				}
				return inner[i].Acquire(ctx, req)
			})
		}
		l := locker.Must(New(nodes, Config{}))
		for n := range 100 {
			k.Store(int64(n))
			check.OK(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("a", n), NoWait: true})))
		}
		time.Sleep(30 * time.Millisecond) // a garbage collection, a busy machine
		check.OK(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: "b", NoWait: true})))
		time.Sleep(time.Second)
		synctest.Wait()
		time.Sleep(time.Hour)
	})
}

// TestIdleIsNotSilence checks that a node which nobody asked for seconds is not taken for silent.
func TestIdleIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := make([]locker.Locker, 5)
		for i := range nodes {
			inner := lockertest.New()
			nodes[i] = locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				if req.Name == "hangs" {
					<-ctx.Done()
					return nil, errors.Join(locker.ErrUnknownOutcome, ctx.Err())
				}
				time.Sleep(5 * time.Millisecond)
				return inner.Acquire(ctx, req)
			})
		}
		l := locker.Must(New(nodes, Config{}))
		go func() { _, _ = l.Acquire(t.Context(), locker.Request{Name: "hangs", NoWait: true}) }()
		time.Sleep(time.Millisecond)
		check.OK(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: "x", NoWait: true})))
		time.Sleep(3 * time.Second) // nobody asks for anything
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				check.OK(t, check.ErrOf(l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("n", i), NoWait: true})))
			})
		}
		wg.Wait()
		time.Sleep(time.Hour)
	})
}

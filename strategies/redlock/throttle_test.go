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
		l, err := New(nodes, Config{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			k.Store(int64(n))
			if _, err := l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("a", n), NoWait: true}); err != nil {
				t.Errorf("%d: %v", n, err)
			}
		}
		time.Sleep(30 * time.Millisecond) // a garbage collection, a busy machine
		if _, err := l.Acquire(t.Context(), locker.Request{Name: "b", NoWait: true}); err != nil {
			t.Errorf("%v", err)
		}
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
		l, err := New(nodes, Config{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = l.Acquire(t.Context(), locker.Request{Name: "hangs", NoWait: true}) }()
		time.Sleep(time.Millisecond)
		if _, err := l.Acquire(t.Context(), locker.Request{Name: "x", NoWait: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // nobody asks for anything
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				if _, err := l.Acquire(t.Context(), locker.Request{Name: fmt.Sprint("n", i), NoWait: true}); err != nil {
					t.Errorf("%v", err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Hour)
	})
}

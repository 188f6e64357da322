package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// urgently returns a context of a call that keeps or ends a hold.
func urgently(t *testing.T) context.Context {
	t.Helper()
	b := &driver.Bounded{Urgent: true}
	b.Start(context.Background(), time.Now().Add(time.Hour))
	t.Cleanup(b.Stop)
	return b
}

func TestGatePlaces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ n, acquires, all int }{{0, 1, 2}, {1, 1, 2}, {2, 1, 2}, {8, 7, 8}, {16, 14, 16}, {128, 112, 128}} {
		t.Run(fmt.Sprint(tt.n), func(t *testing.T) {
			t.Parallel()
			g := adapter.NewGate(tt.n)
			enter := func(ctx context.Context) (n int) {
				for g.TryEnter(ctx) {
					n++
				}
				return n
			}
			acquires := enter(t.Context())
			if all := acquires + enter(urgently(t)); acquires != tt.acquires || all != tt.all {
				t.Errorf("%d acquires, %d calls in all; want %d and %d", acquires, all, tt.acquires, tt.all)
			}
			for range tt.all {
				g.Leave()
			}
			if all := enter(urgently(t)); all != tt.all {
				t.Errorf("%d calls after all have left, want %d", all, tt.all)
			}
		})
	}
}

// Waiting calls enter in order, urgent ones before the others.
func TestGateOrder(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		g := adapter.NewGate(1)
		for range 2 {
			check.Must(t, g.Enter(urgently(t)))
		}
		var order []int
		var mu sync.Mutex
		for i, ctx := range []context.Context{t.Context(), t.Context(), urgently(t), urgently(t)} {
			go func() {
				check.Error(t, "Enter", g.Enter(ctx))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			}()
			synctest.Wait()
		}
		for range 6 {
			g.Leave()
			synctest.Wait()
		}
		check.Equal(t, "order of entry", fmt.Sprint(order), "[2 3 0 1]")
	})
}

// A caller that gives up at the gate has sent nothing and has no place.
func TestGateGivingUp(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		g := adapter.NewGate(1)
		check.Must(t, g.Enter(t.Context()))
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := g.Enter(ctx)
			cancel()
			if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Enter: %v, want that nothing was sent before the deadline", err)
			}
		}
		if g.TryEnter(t.Context()) {
			t.Errorf("entered beside another")
		}
		g.Leave()
		if !g.TryEnter(t.Context()) {
			t.Errorf("the place was lost")
		}
	})
}

// The number of places stays the same when giving up and leaving coincide.
func TestGateUnderLoad(t *testing.T) {
	t.Parallel()
	const n = 8
	g := adapter.NewGate(n)
	var inside, most int
	var mu sync.Mutex
	count := func(d int) {
		mu.Lock()
		defer mu.Unlock()
		inside += d
		most = max(most, inside)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j%20)*time.Microsecond)
				if g.Enter(ctx) == nil {
					count(1)
					if i%2 == 0 {
						<-ctx.Done()
					}
					count(-1)
					g.Leave()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if most > n {
		t.Errorf("%d calls at once, want %d at most", most, n)
	}
	for i := range n - 1 {
		if !g.TryEnter(t.Context()) {
			t.Fatalf("only %d places are left", i)
		}
	}
}

// Keys of one slot share a gate; the slots are those of CLUSTER KEYSLOT.
func TestSlotGates(t *testing.T) {
	t.Parallel()
	gates := adapter.NewSlotGates(2)
	for key, slot := range map[string]int{
		"": 0, "foo": 12182, "{foo}:fence": 12182, "x{foo}y{z}": 12182, "123456789": 12739, "{}foo": 9500,
	} {
		if gates.Of(key) != gates[slot/256] {
			t.Errorf("the gate of %q is not that of slot %d", key, slot)
		}
	}
}

package reentrant_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// orders returns all permutations of n indices.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, shorter := range orders(n - 1) {
		for at := range n {
			order := append([]int{}, shorter[:at]...)
			all = append(all, append(append(order, n-1), shorter[at:]...))
		}
	}
	return all
}

// Four acquires need four releases, in any order. Only the last one publishes.
func TestOrderOfRelease(t *testing.T) {
	t.Parallel()
	for _, order := range orders(4) {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				sub := b.m.NewSubscriber()
				defer sub.Close()
				sub.Subscribe(wake)
				var told int
				go func() {
					for range sub.Messages() {
						told++
					}
				}()
				var locks []*locker.Lock
				for i := range 4 {
					locks = append(locks, b.me(t, locker.Request{TTL: time.Duration(4+i*(5-2*i)) * time.Second})) // 4, 7, 6, 1 s
				}
				for _, i := range order {
					b.refused(t)
					synctest.Wait()
					if told != 0 {
						t.Error("a release was published while the lock was held")
					}
					release(t, locks[i])
					match(t, locks[i].Release(t.Context()), locker.ErrReleased)
				}
				synctest.Wait()
				if told != 1 {
					t.Errorf("%d releases were published, want the last", told)
				}
				b.free(t)
			})
		})
	}
}

// The lease of the key is that of the live hold that ends last. Only the end of that hold shortens
// it.
func TestLease(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		want := func(left time.Duration) {
			t.Helper()
			if ttl, state := b.m.TTL(name), b.holds(t, b.holdsNow(t)); ttl != left || state.Left != left {
				t.Errorf("the key lives for %v, the lock for %v; want %v", ttl, state.Left, left)
			}
			if held := b.refusal(t); held.RetryAfter != left {
				t.Errorf("RetryAfter %v, want %v", held.RetryAfter, left)
			}
		}
		outer := b.me(t, locker.Request{TTL: 10 * time.Second})
		want(10 * time.Second)
		short := b.me(t, locker.Request{TTL: time.Second})
		want(10 * time.Second)
		long := b.me(t, locker.Request{TTL: time.Minute})
		want(time.Minute)
		match(t, short.Renew(t.Context(), 20*time.Second))
		want(time.Minute)
		match(t, short.Renew(t.Context(), 2*time.Minute))
		want(2 * time.Minute)
		match(t, short.Renew(t.Context(), time.Second))
		want(2 * time.Minute)
		release(t, short)
		want(time.Minute)
		release(t, long)
		want(10 * time.Second)
		sleep(4 * time.Second)
		want(6 * time.Second)
		match(t, outer.Renew(t.Context(), 0))
		want(10 * time.Second)
		release(t, outer)
		b.free(t)
	})
}

func (b bench) holdsNow(t *testing.T) int {
	t.Helper()
	state, err := b.Inspect(t.Context(), name)
	match(t, err)
	return state.Holds
}

// A hold whose lease ended is lost, though the lock lives on, and no renewal brings it back.
func TestDeadHold(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.me(t, locker.Request{TTL: 10 * time.Second})
		req := locker.Request{TTL: time.Second, Fenced: true}
		renewed, released := b.me(t, req), b.me(t, req)
		b.holds(t, 3)
		sleep(time.Second)
		b.holds(t, 1)
		_, err := leaseOf(renewed).Do(t.Context(), lease.Op{Kind: lease.OpRenew, TTL: time.Minute})
		match(t, err, locker.ErrLost)
		_, err = leaseOf(renewed).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: renewed.Fence() + 1})
		match(t, err, locker.ErrLost)
		_, err = leaseOf(released).Do(t.Context(), lease.Op{Kind: lease.OpRelease})
		match(t, err, locker.ErrLost)
		_, err = locker.Resume(t.Context(), b, renewed.Handle())
		match(t, err, locker.ErrNotHeld)
		b.holds(t, 1)
		b.refused(t)
		match(t, outer.Renew(t.Context(), 0))
		release(t, outer) // though a dead hold is still stored
		b.free(t)
	})
}

// Scripts that read all holds remove the expired ones.
func TestReleaseRemovesDeadHolds(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.me(t, locker.Request{TTL: 10 * time.Second})
		for range 10 {
			b.me(t, locker.Request{TTL: time.Second})
		}
		long := b.me(t, locker.Request{TTL: time.Minute})
		sleep(time.Second)
		release(t, long)
		if keys, _ := b.m.HKeys(name); len(keys) != 4 {
			t.Errorf("stored are %q, want kind, owner, last and one hold", keys)
		}
		release(t, outer)
		b.free(t)
	})
}

// If there are more holds than a script looks at, the key may outlive them: the next acquire finds
// that out.
func TestDeadTenure(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"me", "you"} {
		t.Run(owner, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				first := b.me(t, locker.Request{TTL: 5 * time.Second, Fenced: true, Note: "old"})
				for range 200 {
					b.me(t, locker.Request{TTL: 5 * time.Second})
				}
				release(t, b.me(t, locker.Request{TTL: time.Hour}))
				b.holds(t, 201)
				if owner == "you" { // whoever is refused sets it right
					if held := b.refusal(t); held.RetryAfter != 5*time.Second || b.m.TTL(name) != 5*time.Second {
						t.Errorf("RetryAfter %v, the key lives for %v; want 5s", held.RetryAfter, b.m.TTL(name))
					}
					release(t, b.me(t, locker.Request{TTL: time.Hour}))
				}
				sleep(5 * time.Second)
				if !b.m.Exists(name) {
					t.Fatal("the key has gone: this test is about one that stays")
				}
				b.holds(t, 0)
				next, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: owner, Fenced: true})
				match(t, err)
				if next.Fence() <= first.Fence() {
					t.Errorf("a new tenure has the fence %d, after %d", next.Fence(), first.Fence())
				}
				if state := b.holds(t, 1); state.Note != "" || state.Owner != owner {
					t.Errorf("state %+v", state)
				}
				release(t, next)
				b.free(t)
			})
		})
	}
}

// Holds that are never released do not accumulate while others enter.
func TestDeadHoldsAreRemoved(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.me(t, locker.Request{TTL: 24 * time.Hour})
		for range 3000 {
			b.me(t, locker.Request{TTL: 10 * time.Millisecond})
			sleep(10 * time.Millisecond)
		}
		if keys, _ := b.m.HKeys(name); len(keys) > 200 {
			t.Errorf("%d fields are stored for one live hold", len(keys))
		}
		release(t, outer)
		b.free(t)
	})
}

// Thousands of nested acquires and releases work, also if the outermost are released first.
func TestManyHolds(t *testing.T) {
	t.Parallel()
	for inwards, n := range map[bool]int{false: effort.Of(1000, 2000, 10_000), true: effort.Of(500, 1000, 1000)} {
		t.Run(fmt.Sprintf("inwards %v", inwards), func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				locks := make([]*locker.Lock, n)
				for i := range locks {
					locks[i] = b.me(t, locker.Request{TTL: time.Hour + time.Duration(i)*time.Millisecond})
				}
				b.holds(t, n)
				for i := range locks {
					at := n - 1 - i
					if inwards {
						at = i
					}
					release(t, locks[at])
					if i%500 == 0 {
						b.refused(t)
					}
				}
				b.free(t)
			})
		})
	}
}

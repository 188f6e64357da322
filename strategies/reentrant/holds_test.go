//realtime:ok run is a bubble

package reentrant_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

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
					if held := b.refusal(t); held.Left != 5*time.Second || b.m.TTL(name) != 5*time.Second {
						t.Errorf("left %v, the key lives for %v; want 5s", held.Left, b.m.TTL(name))
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
		for range 600 { // three times as many as may be stored
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
	for inwards, n := range map[bool]int{false: effort.Of(300, 300, 10_000), true: effort.Of(200, 200, 1000)} {
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
					if i%100 == 0 {
						_ = b.refusal(t)
					}
				}
				b.free(t)
			})
		})
	}
}

// The field that names the hold that ends last follows a resume and its undo.
func TestResumeMovesLast(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer, old := b.me(t, locker.Request{TTL: time.Hour}), b.me(t, locker.Request{TTL: 2 * time.Hour})
		resumed, err := locker.Resume(t.Context(), b, old.Handle())
		match(t, err)
		b.holds(t, 2)
		_, err = locktest.LeaseOf(resumed).Do(t.Context(), lease.Op{Kind: lease.OpUndo})
		match(t, err)
		b.holds(t, 2)
		release(t, old, outer)
	})
}

func TestBadConfig(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		locktest.BadConfig(t, "reentrant", func(cfg keylock.Config) error {
			_, err := reentrant.New(b.drv, reentrant.Config{Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout})
			return err
		})
		_, err := reentrant.New(nil, reentrant.Config{})
		match(t, err, locker.ErrInvalid)
	})
}

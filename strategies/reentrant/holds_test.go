//realtime:ok run is a bubble

package reentrant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/internal/malformedhash"
	"github.com/holdfast-go/holdfast/strategies/keylock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// Scripts remove the expired holds when they read all holds.
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

// If there are more holds than a script reads, the key may outlive them: the next acquire finds
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
				if owner == "you" { // a refused caller corrects it
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
				check.AtLeast(t, "fence of a new tenure", next.Fence(), first.Fence()+1)
				if state := b.holds(t, 1); state.Note != "" || state.Owner != owner {
					t.Errorf("state %+v", state)
				}
				release(t, next)
				b.free(t)
			})
		})
	}
}

// Holds without a release do not accumulate while others enter.
func TestDeadHoldsAreRemoved(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.me(t, locker.Request{TTL: 24 * time.Hour})
		for range 600 { // three times as many as may be stored
			b.me(t, locker.Request{TTL: 10 * time.Millisecond})
			sleep(10 * time.Millisecond)
		}
		keys, _ := b.m.HKeys(name)
		check.AtMost(t, "fields for one live hold", len(keys), 200)
		release(t, outer)
		b.free(t)
	})
}

// Thousands of nested acquires and releases work, even if the outermost are released first.
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

// The field last names the hold with the latest end, through a resume and its undo.
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

// A field not in our form is reported at once as a key that is not a lock. The key is left alone.
func TestMalformedFields(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.me(t, locker.Request{TTL: time.Hour, Fenced: true})
		b.me(t, locker.Request{TTL: 2 * time.Hour, Fenced: true})
		hash := malformedhash.Of(t, b.m, name)
		me, you := locker.Request{Name: name, Owner: "me", Fenced: true}, locker.Request{Name: name, Owner: "you", Fenced: true}
		ops := malformedhash.OpsOf(t, b, lock, me, you)
		for _, field := range append(hash.Fields(), "rough", strings.Repeat("h", lease.TokenLen)) {
			if field == "kind" || field == "owner" || field == "last" {
				continue // any text
			}
			for _, value := range []string{"", "x", "nan", "99999999999999 ", strings.Repeat("9", 400)} {
				hash.Try(t, ops, field, value)
			}
		}
		hash.Restore()
		match(t, lock.Release(t.Context()))

		b.m.FlushAll()
		b.m.HSet(name, "kind", "reentrant") // and no holder
		if _, err := b.Acquire(t.Context(), locker.Request{Name: name}); err == nil || errors.Is(err, locker.ErrNotAcquired) {
			t.Errorf("a hash that is ours only half: %v, want an error", err)
		}
	})
}

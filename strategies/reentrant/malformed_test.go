package reentrant_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/malformedhash"
)

// A field that is not in our form is reported at once as a key that is not a lock. The key is left
// alone.
func TestMalformedFields(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.me(t, locker.Request{TTL: time.Hour, Fenced: true})
		b.me(t, locker.Request{TTL: 2 * time.Hour, Fenced: true})
		hash := malformedhash.Of(t, b.m, name)
		ops := b.allOps(t, lock)
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

// allOps returns all operations on the name.
func (b bench) allOps(t *testing.T, lock *locker.Lock) malformedhash.Ops {
	t.Helper()
	acquire := func(owner string) func() error {
		return func() error {
			_, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: owner, Fenced: true})
			return err
		}
	}
	do := func(op lease.Op) func() error {
		return func() error { _, err := leaseOf(lock).Do(t.Context(), op); return err }
	}
	return malformedhash.Ops{
		Acquires: map[string]func() error{"enter": acquire("me"), "acquire": acquire("you")},
		Others: map[string]func() error{
			"resume":  func() error { _, err := locker.Resume(t.Context(), b, lock.Handle()); return err },
			"inspect": func() error { _, err := b.Inspect(t.Context(), name); return err },
			"renew":   do(lease.Op{Kind: lease.OpRenew, TTL: 3 * time.Hour}),
			"release": do(lease.Op{Kind: lease.OpRelease}),
			"raise":   do(lease.Op{Kind: lease.OpRaiseFence, Fence: 1}),
		},
	}
}

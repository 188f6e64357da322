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

package rwhash_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/malformedhash"
)

// No script writes these numbers and holds.
var (
	malformedNumbers = []string{"", "x", "nan", strings.Repeat("9", 400)}
	malformedHolds   = []string{
		"x", "99999999999999", "99999999999999 x 0:", "99999999999999 0 99999:", strings.Repeat("9", 400) + " 0 0:",
	}
)

// A field not in our form is reported at once as a key that is not a lock. The key is left alone,
// and other holders can renew and release.
func TestMalformedFields(t *testing.T) {
	fenced := locker.Request{TTL: time.Hour, Fenced: true}
	eachRun(t, modesByName, func(t *testing.T, b bench, mode locker.Mode) {
		lock := b.have(t, as(mode, "me", fenced))
		if mode == locker.Shared {
			b.read(t, locker.Request{TTL: 2 * time.Hour})
		}
		for _, req := range []locker.Request{writer, reader} { // a reader kept out by a writer writes bar
			if _, err := b.waits(t, req, 0).try(t); err != nil {
				match(t, err, locker.ErrNotAcquired)
			}
		}
		hash, ops := malformedhash.Of(t, b.m, name), malformedhash.OpsOf(t, b, lock, asWriter(fenced), asReader(fenced))
		for _, field := range []string{"rough", "bar", "turn"} {
			for _, value := range malformedNumbers {
				hash.Try(t, ops, field, value)
			}
		}
		holds := slices.DeleteFunc(hash.Fields(), func(f string) bool { return len(f) != lease.TokenLen })
		for _, field := range append(holds, strings.Repeat("h", lease.TokenLen)) {
			for _, value := range malformedHolds {
				hash.Try(t, ops, field, value)
			}
		}
		b.m.FlushAll()
		hash.Restore()
		match(t, lock.Release(t.Context()))
	})
}

// An owner or a note beyond the maximum length is not shown as the holder's.
func TestHugeNames(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		huge := strings.Repeat("x", 1<<16)
		b.m.HSet(name, "kind", "rwhash", "last", strings.Repeat("h", lease.TokenLen),
			strings.Repeat("h", lease.TokenLen), fmt.Sprintf("99999999999999 0 4:note%s", huge))
		_, err := b.Acquire(t.Context(), locker.Request{Name: name})
		held, ok := errors.AsType[*locker.ContentionError](err)
		if !ok || len(held.Owner)+len(held.Note) > 2*locker.MaxNameLen {
			t.Errorf("refused by %.200v", err)
		}
		state, err := b.Inspect(t.Context(), name)
		if err != nil || len(state.Owner)+len(state.Note) > 2*locker.MaxNameLen {
			t.Errorf("inspect: an owner of %d bytes, a note of %d, %v", len(state.Owner), len(state.Note), err)
		}
		b.m.Del(name)
	})
}

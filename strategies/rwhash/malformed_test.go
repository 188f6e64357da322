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

// Values that no script writes, of numbers and of holds.
var (
	malformedNumbers = []string{"", "x", "nan", strings.Repeat("9", 400)}
	malformedHolds   = []string{
		"x", "99999999999999", "99999999999999 x 0:", "99999999999999 0 99999:", strings.Repeat("9", 400) + " 0 0:",
	}
)

// A field that is not in our form is reported at once as a key that is not a lock. The key is left
// alone, and other holders can renew and release.
func TestMalformedFields(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(t *testing.T, b bench) *locker.Lock{
		"a writer": func(t *testing.T, b bench) *locker.Lock {
			return b.write(t, locker.Request{TTL: time.Hour, Fenced: true})
		},
		"a reader": func(t *testing.T, b bench) *locker.Lock {
			lock := b.read(t, locker.Request{TTL: time.Hour, Fenced: true})
			b.read(t, locker.Request{TTL: 2 * time.Hour})
			return lock
		},
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				lock := prepare(t, b)
				for _, mode := range modes { // leave intents
					_, err := b.Acquire(t.Context(), locker.Request{Name: name, Mode: mode})
					if err != nil {
						match(t, err, locker.ErrNotAcquired)
					}
				}
				hash, ops := malformedhash.Of(t, b.m, name), b.allOps(t, lock)
				for _, field := range []string{"rough", "wwant", "bar", "rwant", "ample", "turn", "hsince", "hwant"} {
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
		})
	}
}

// allOps returns all operations on the name.
func (b bench) allOps(t *testing.T, lock *locker.Lock) malformedhash.Ops {
	t.Helper()
	acquire := func(req locker.Request) func() error {
		return func() error { _, err := b.Acquire(t.Context(), req); return err }
	}
	do := func(op lease.Op) func() error {
		return func() error { _, err := leaseOf(lock).Do(t.Context(), op); return err }
	}
	return malformedhash.Ops{
		Acquires: map[string]func() error{
			"write": acquire(locker.Request{Name: name, Fenced: true}),
			"read":  acquire(asReader(locker.Request{Fenced: true})),
		},
		Others: map[string]func() error{
			"resume":  func() error { _, err := locker.Resume(t.Context(), b, lock.Handle()); return err },
			"inspect": func() error { _, err := b.Inspect(t.Context(), name); return err },
			"renew":   do(lease.Op{Kind: lease.OpRenew, TTL: 3 * time.Hour}),
			"release": do(lease.Op{Kind: lease.OpRelease}),
			"raise":   do(lease.Op{Kind: lease.OpRaiseFence, Fence: 1}),
			"up":      do(lease.Op{Kind: lease.OpConvert, Mode: locker.Exclusive}),
			"down":    do(lease.Op{Kind: lease.OpConvert, Mode: locker.Shared}),
		},
	}
}

// An owner or a note that is too long is not shown as the holder's.
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

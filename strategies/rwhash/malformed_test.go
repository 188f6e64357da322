package rwhash_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// What no script of ours writes for a number, and for a hold.
var (
	malformedNumbers = []string{"", "x", "nan", strings.Repeat("9", 400)}
	malformedHolds   = []string{
		"x", "99999999999999", "99999999999999 x 0:", "99999999999999 0 99999:", strings.Repeat("9", 400) + " 0 0:",
	}
)

// A field that is not of our form is an error of a key that is not ours, at once, and leaves the key alone. Who holds beside it
// can renew and release.
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
				sound := map[string]string{}
				fields, err := b.m.HKeys(name)
				match(t, err)
				for _, f := range fields {
					sound[f] = b.m.HGet(name, f)
				}
				for _, field := range []string{"rough", "wwant", "bar", "rwant", "ample", "turn", "hsince", "hwant"} {
					for _, value := range malformedNumbers {
						b.tryMalformed(t, lock, sound, field, value)
					}
				}
				for _, field := range append(b.tokens(t), strings.Repeat("h", locker.TokenLen)) {
					for _, value := range malformedHolds {
						b.tryMalformed(t, lock, sound, field, value)
					}
				}
				b.m.FlushAll()
				b.restore(sound)
				match(t, lock.Release(t.Context()))
			})
		})
	}
}

// tokens are the fields that are holds.
func (b bench) tokens(t *testing.T) []string {
	t.Helper()
	fields, err := b.m.HKeys(name)
	match(t, err)
	return slices.DeleteFunc(fields, func(f string) bool { return len(f) != locker.TokenLen })
}

// restore stores fields.
func (b bench) restore(fields map[string]string) {
	b.m.Del(name)
	for f, v := range fields {
		b.m.HSet(name, f, v)
	}
	b.m.SetTTL(name, 3*time.Hour)
}

// tryMalformed does all there is with one field changed.
func (b bench) tryMalformed(t *testing.T, lock *locker.Lock, sound map[string]string, field, value string) {
	t.Helper()
	for op, f := range map[string]func() error{
		"write":   func() error { _, err := b.Acquire(t.Context(), locker.Request{Name: name, Fenced: true}); return err },
		"read":    func() error { _, err := b.Acquire(t.Context(), asReader(locker.Request{Fenced: true})); return err },
		"resume":  func() error { _, err := locker.Resume(t.Context(), b, lock.Handle()); return err },
		"inspect": func() error { _, err := b.Inspect(t.Context(), name); return err },
		"renew":   b.op(t, lock, locker.Op{Kind: locker.OpRenew, TTL: 3 * time.Hour}),
		"release": b.op(t, lock, locker.Op{Kind: locker.OpRelease}),
		"raise":   b.op(t, lock, locker.Op{Kind: locker.OpRaiseFence, Fence: 1}),
		"up":      b.op(t, lock, locker.Op{Kind: locker.OpConvert, Mode: locker.Exclusive}),
		"down":    b.op(t, lock, locker.Op{Kind: locker.OpConvert, Mode: locker.Shared}),
	} {
		b.restore(sound)
		b.m.HSet(name, field, value)
		before, start := b.m.Dump(), time.Now()
		err := f()
		if errors.Is(err, locker.ErrUnknownOutcome) || time.Since(start) > 0 {
			t.Errorf("%s where %s is %.40q: %v after %v", op, field, value, err, time.Since(start))
		}
		foreign := err != nil && strings.Contains(err.Error(), "not of our form")
		if foreign && b.m.Dump() != before {
			t.Errorf("%s where %s is %.40q: %v, but the key was changed:\n%s", op, field, value, err, b.m.Dump())
		}
		looks := op == "inspect" || (op == "write" || op == "read") && field == sound["last"]
		if len(field) == locker.TokenLen && looks && !foreign {
			t.Errorf("%s where the hold %s is %.40q: %v, want an error that says what is there", op, field, value, err)
		}
		if b.m.Exists(name) && b.m.TTL(name) == 0 {
			t.Errorf("%s where %s is %.40q left the key without an end", op, field, value)
		}
	}
}

func (b bench) op(t *testing.T, lock *locker.Lock, op locker.Op) func() error {
	t.Helper()
	return func() error { _, err := leaseOf(lock).Do(t.Context(), op); return err }
}

// Who holds is not told by an owner or a note that is too long to be ours.
func TestHugeNames(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		huge := strings.Repeat("x", 1<<16)
		b.m.HSet(name, "kind", "rwhash", "last", strings.Repeat("h", locker.TokenLen),
			strings.Repeat("h", locker.TokenLen), fmt.Sprintf("99999999999999 0 4:note%s", huge))
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

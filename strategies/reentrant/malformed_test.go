package reentrant_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// A field that is not of our form is an error of a key that is not ours, at once, and leaves the key alone.
func TestMalformedFields(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.me(t, locker.Request{TTL: time.Hour, Fenced: true})
		b.me(t, locker.Request{TTL: 2 * time.Hour, Fenced: true})
		sound := map[string]string{}
		fields, err := b.m.HKeys(name)
		match(t, err)
		for _, f := range fields {
			sound[f] = b.m.HGet(name, f)
		}
		for _, field := range append(fields, "rough", strings.Repeat("h", locker.TokenLen)) {
			if field == "kind" || field == "owner" || field == "last" {
				continue // any text
			}
			for _, value := range []string{"", "x", "nan", "99999999999999 ", strings.Repeat("9", 400)} {
				b.tryMalformed(t, lock, sound, field, value)
			}
		}
		b.restore(sound)
		match(t, lock.Release(t.Context()))
	})
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
	acquire := func(owner string) func() error {
		return func() error {
			_, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: owner, Fenced: true})
			return err
		}
	}
	do := func(op locker.Op) func() error {
		return func() error { _, err := leaseOf(lock).Do(t.Context(), op); return err }
	}
	for op, f := range map[string]func() error{
		"enter":   acquire("me"),
		"acquire": acquire("you"),
		"resume":  func() error { _, err := locker.Resume(t.Context(), b, lock.Handle()); return err },
		"inspect": func() error { _, err := b.Inspect(t.Context(), name); return err },
		"renew":   do(locker.Op{Kind: locker.OpRenew, TTL: 3 * time.Hour}),
		"release": do(locker.Op{Kind: locker.OpRelease}),
		"raise":   do(locker.Op{Kind: locker.OpRaiseFence, Fence: 1}),
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
		looks := op == "inspect" || (op == "acquire" || op == "enter") && field == sound["last"]
		if len(field) == locker.TokenLen && looks && !foreign {
			t.Errorf("%s where the hold %s is %.40q: %v, want an error that says what is there", op, field, value, err)
		}
		if b.m.Exists(name) && b.m.TTL(name) == 0 {
			t.Errorf("%s where %s is %.40q left the key without an end", op, field, value)
		}
	}
}

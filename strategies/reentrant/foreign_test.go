//realtime:ok each test runs in a bubble, by run of tools_test.go

package reentrant_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A key that is not a lock is reported as such, and is left alone.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	for what, set := range map[string]func(b bench){
		"a string":                      func(b bench) { _ = b.m.Set(name, "x") },
		"a list":                        func(b bench) { _, _ = b.m.Push(name, "x") },
		"a hash":                        func(b bench) { b.m.HSet(name, "field", "x") },
		"a hash of another kind":        func(b bench) { b.m.HSet(name, "kind", "rwhash", "owner", "me", "last", "x") },
		"a hash that is ours only half": func(b bench) { b.m.HSet(name, "kind", "reentrant") },
	} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				lock := b.me(t, locker.Request{Fenced: true})
				b.m.FlushAll()
				set(b)
				before := b.m.Dump()
				l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
				for _, fenced := range []bool{false, true} {
					start := time.Now()
					_, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: fenced})
					if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) || driver.Transient(err) {
						t.Errorf("acquire: %v; want an error that does not pass", err)
					}
					if time.Since(start) > 0 || err != nil && !strings.Contains(strings.ToLower(err.Error()), "type") {
						t.Errorf("%v after %v; want the type named at once", err, time.Since(start))
					}
				}
				_, err := b.Inspect(t.Context(), name)
				if err == nil {
					t.Error("inspect: no error")
				}
				_, err = locker.Resume(t.Context(), b, lock.Handle())
				if err == nil || errors.Is(err, locker.ErrUnknownOutcome) {
					t.Errorf("resume: %v", err)
				}
				_, err = leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRaiseFence, Fence: 1})
				match(t, err, locker.ErrLost)
				_, err = leaseOf(lock).Do(t.Context(), lease.Op{Kind: lease.OpRenew, TTL: time.Minute})
				match(t, err, locker.ErrLost)
				match(t, lock.Release(t.Context()), locker.ErrLost)
				sleep(time.Minute)
				if after := b.m.Dump(); after != before {
					t.Errorf("there was\n%s, and now there is\n%s", before, after)
				}
			})
		})
	}
}

// A Handle can name a hold, but no other field of the hash.
func TestForeignHandle(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.me(t, locker.Request{})
		before := b.m.Dump()
		for _, token := range []string{"kind", "owner", "last", "", strings.Repeat("x", lease.TokenLen), strings.Repeat("x", 200)} {
			h := locker.NewHandle(lease.Grant{Name: name, Owner: "me", Token: token})
			if _, err := locker.Resume(t.Context(), b, h); !errors.Is(err, locker.ErrInvalid) && !errors.Is(err, locker.ErrNotHeld) {
				t.Errorf("resume by the token %q: %v", token, err)
			}
		}
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: "you", Resume: lock.Handle()})
		match(t, err, locker.ErrInvalid)
		if after := b.m.Dump(); after != before {
			t.Errorf("there was\n%s, and now there is\n%s", before, after)
		}
		resumed, err := b.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Resume: lock.Handle(), Note: "taken over"})
		match(t, err)
		if state := b.holds(t, 1); state.Note != "taken over" || resumed.Owner() != "me" {
			t.Errorf("state %+v of %v", state, resumed)
		}
		match(t, lock.Release(t.Context()), locker.ErrLost)
		release(t, resumed)
		b.free(t)
	})
}

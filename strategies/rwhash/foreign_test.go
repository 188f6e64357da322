package rwhash_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// A key that is not a lock is reported as such, and is left alone.
func TestForeignKey(t *testing.T) {
	t.Parallel()
	for what, set := range map[string]func(t *testing.T, b bench){
		"a string": func(_ *testing.T, b bench) { _ = b.m.Set(name, "x") },
		"a list":   func(_ *testing.T, b bench) { _, _ = b.m.Push(name, "x") },
		"a hash":   func(_ *testing.T, b bench) { b.m.HSet(name, "field", "x") },
		"a lock of reentrant": func(t *testing.T, b bench) {
			_, err := locker.Must(reentrant.New(b.drv, reentrant.Config{})).Acquire(t.Context(), locker.Request{Name: name, TTL: time.Hour})
			match(t, err)
		},
	} {
		for _, mode := range modes {
			t.Run(what+", "+mode.String(), func(t *testing.T) {
				run(t, func(t *testing.T, b bench) {
					lock := b.have(t, locker.Request{Name: name, Mode: mode, Fenced: true})
					b.m.FlushAll()
					set(t, b)
					before := b.m.Dump()
					l := locker.Chain(b.Locker, locker.Must(retry.New(retry.Config{})))
					for _, req := range []locker.Request{{}, {Fenced: true}, {Mode: locker.Shared}, {Mode: locker.Shared, Fenced: true}} {
						req.Name = name
						start := time.Now()
						_, err := l.Acquire(t.Context(), req)
						if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) || driver.Transient(err) {
							t.Errorf("acquire: %v; want an error that does not pass", err)
						}
						if time.Since(start) > 0 || err != nil && !strings.Contains(strings.ToLower(err.Error()), "type") {
							t.Errorf("%v after %v; want the type named at once", err, time.Since(start))
						}
					}
					if _, err := b.Inspect(t.Context(), name); err == nil {
						t.Error("inspect: no error")
					}
					_, err := locker.Resume(t.Context(), b, lock.Handle())
					if err == nil || errors.Is(err, locker.ErrUnknownOutcome) {
						t.Errorf("resume: %v", err)
					}
					for _, op := range []lease.Op{
						{Kind: lease.OpRaiseFence, Fence: 1}, {Kind: lease.OpRenew, TTL: time.Minute},
						{Kind: lease.OpConvert, Mode: locker.Shared}, {Kind: lease.OpConvert, Mode: locker.Exclusive},
					} {
						_, err = leaseOf(lock).Do(t.Context(), op)
						match(t, err, locker.ErrLost)
					}
					match(t, lock.Release(t.Context()), locker.ErrLost)
					sleep(time.Minute)
					if after := b.m.Dump(); after != before {
						t.Errorf("there was\n%s, and now there is\n%s", before, after)
					}
				})
			})
		}
	}
}

// A Handle can name a hold, but no other field of the hash.
func TestForeignHandle(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.read(t, locker.Request{Owner: "me"})
		before := b.m.Dump()
		for _, token := range []string{"kind", "last", "wwant", strings.Repeat("x", lease.TokenLen), strings.Repeat("x", 200)} {
			for _, mode := range modes {
				h := locker.NewHandle(lease.Grant{Name: name, Owner: "me", Token: token, Mode: mode})
				if _, err := locker.Resume(t.Context(), b, h); !errors.Is(err, locker.ErrInvalid) && !errors.Is(err, locker.ErrNotHeld) {
					t.Errorf("resume by the token %q: %v", token, err)
				}
			}
		}
		_, err := b.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, Owner: "you", Resume: lock.Handle()})
		match(t, err, locker.ErrInvalid)
		if after := b.m.Dump(); after != before {
			t.Errorf("there was\n%s, and now there is\n%s", before, after)
		}
		resumed, err := b.Acquire(t.Context(), locker.Request{Name: name, Mode: locker.Shared, Resume: lock.Handle(), Note: "taken over"})
		match(t, err)
		if state := b.holds(t, 1, locker.Shared); state.Note != "taken over" || state.Owner != "me" {
			t.Errorf("state %+v", state)
		}
		match(t, lock.Release(t.Context()), locker.ErrLost)
		release(t, resumed)
		b.free(t)
	})
}

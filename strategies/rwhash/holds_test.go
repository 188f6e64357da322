package rwhash_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// Many readers or one writer hold, whoever the owner is: the lock is not reentrant.
func TestModes(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		me := locker.Request{Owner: "me", TTL: 10 * time.Second, Note: "first"}
		first := b.read(t, me)
		b.refused(t, noWait(asWriter(me)), "me", 10*time.Second)
		me.TTL, me.Note = 20*time.Second, "second"
		second := b.read(t, me)
		if state := b.holds(t, 2, locker.Shared); state.Owner != "me" || state.Note != "second" || state.Left != 20*time.Second {
			t.Errorf("state %+v, want that of the reader who ends last", state)
		}
		b.refused(t, noWait(asWriter(me)), "me", 20*time.Second)
		release(t, first)
		b.refused(t, noWait(asWriter(me)), "me", 20*time.Second)
		release(t, second)
		b.free(t)

		lock := b.write(t, me)
		if state := b.holds(t, 1, locker.Exclusive); state.Owner != "me" || state.Note != "second" || state.Left != 20*time.Second {
			t.Errorf("state %+v", state)
		}
		b.refused(t, noWait(asWriter(me)), "me", 20*time.Second)
		b.refused(t, noWait(asReader(me)), "me", 20*time.Second)
		release(t, lock)
		b.free(t)
	})
}

// Owner and note are returned byte by byte, and make no difference to who enters.
func TestOwnerAndNote(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		for _, owner := range []string{"me", "kind", "\x00", "1:2", " 3 ", "\xff\xfe\n", strings.Repeat("o", locker.MaxNameLen)} {
			for _, note := range []string{"", ":", "\x00\n\xff", strings.Repeat("n", locker.MaxNameLen)} {
				for _, mode := range []locker.Mode{locker.Shared, locker.Exclusive} {
					lock := b.have(t, locker.Request{Name: name, Mode: mode, Owner: owner, Note: note})
					match(t, lock.Renew(t.Context(), time.Hour))
					_, err := b.Acquire(t.Context(), noWait(writer))
					held, ok := errors.AsType[*locker.ContentionError](err)
					if !ok || held.Owner != owner || held.Note != note {
						t.Errorf("%v, want owner %q, note %q", err, owner, note)
					}
					if state := b.holds(t, 1, mode); state.Owner != owner || state.Note != note {
						t.Errorf("state %+v, want owner %q, note %q", state, owner, note)
					}
					release(t, lock)
				}
			}
		}
		b.free(t)
	})
}

// A reader's release ends its own hold, in any order. Only the last one publishes.
func TestOrderOfRelease(t *testing.T) {
	t.Parallel()
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 3, 0, 1}, {1, 3, 0, 2}} {
		t.Run("", func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				told := b.told(t)
				var locks []*locker.Lock
				for i := range 4 {
					locks = append(locks, b.read(t, locker.Request{TTL: time.Duration(4+i*(5-2*i)) * time.Second})) // 4, 7, 6, 1 s
				}
				for n, i := range order {
					b.holds(t, 4-n, locker.Shared)
					if _, err := b.Acquire(t.Context(), noWait(writer)); !errors.Is(err, locker.ErrNotAcquired) {
						t.Errorf("a writer beside readers: %v", err)
					}
					if told() != 0 {
						t.Error("a release was published while others hold")
					}
					release(t, locks[i])
				}
				if told() != 1 {
					t.Errorf("%d releases were published, want the last", told())
				}
				b.free(t)
			})
		})
	}
}

// A dead reader blocks a writer for its own TTL and no longer, though others renew theirs until
// then.
func TestCrashedReader(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		crashed := b.read(t, locker.Request{TTL: 10 * time.Second, Owner: "crashed"})
		renewing := b.read(t, locker.Request{TTL: 3 * time.Second, Owner: "alive"})
		for range 9 {
			sleep(time.Second)
			match(t, renewing.Renew(t.Context(), 0))
		}
		b.holds(t, 2, locker.Shared)
		release(t, renewing)
		b.refused(t, noWait(writer), "crashed", time.Second)
		sleep(time.Second)
		match(t, crashed.Renew(t.Context(), 0), locker.ErrLost)
		release(t, b.write(t, locker.Request{}))
		match(t, crashed.Release(t.Context()), locker.ErrLost)

		crashed = b.read(t, locker.Request{TTL: 3 * time.Second})
		renewing = b.read(t, locker.Request{TTL: 10 * time.Second})
		for range 4 {
			sleep(time.Second)
			match(t, renewing.Renew(t.Context(), 0))
		}
		b.holds(t, 1, locker.Shared)
		_, err := leaseOf(crashed).Do(t.Context(), lease.Op{Kind: lease.OpRenew, TTL: time.Minute})
		match(t, err, locker.ErrLost)
		_, err = locker.Resume(t.Context(), b, crashed.Handle())
		match(t, err, locker.ErrNotHeld)
		match(t, convert(t, crashed, locker.Exclusive), locker.ErrLost)
		release(t, renewing)
		release(t, b.write(t, locker.Request{}))
		b.free(t)
	})
}

// A renewal extends its own hold and never shortens it. The key lives as long as the hold that ends
// last.
func TestLease(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		want := func(left time.Duration) {
			t.Helper()
			state, err := b.Inspect(t.Context(), name)
			match(t, err)
			if ttl := b.m.TTL(name); ttl != left || state.Left != left {
				t.Errorf("the key lives for %v, the lock for %v; want %v", ttl, state.Left, left)
			}
		}
		long := b.read(t, locker.Request{TTL: 10 * time.Second})
		short := b.read(t, locker.Request{TTL: time.Second})
		want(10 * time.Second)
		match(t, short.Renew(t.Context(), time.Minute))
		want(time.Minute)
		match(t, short.Renew(t.Context(), time.Second))
		want(time.Minute)
		release(t, short)
		want(10 * time.Second)
		sleep(4 * time.Second)
		want(6 * time.Second)
		match(t, long.Renew(t.Context(), 0))
		want(10 * time.Second)
		release(t, long)
		lock := b.write(t, locker.Request{TTL: time.Second})
		want(time.Second)
		match(t, lock.Renew(t.Context(), time.Hour))
		match(t, lock.Renew(t.Context(), time.Second))
		want(time.Hour)
		release(t, lock)
		b.free(t)
	})
}

// Holds that are never released do not accumulate while readers enter.
func TestDeadHoldsAreRemoved(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		outer := b.read(t, locker.Request{TTL: 24 * time.Hour})
		for range 1500 {
			b.read(t, locker.Request{TTL: 10 * time.Millisecond})
			sleep(10 * time.Millisecond)
		}
		if keys, _ := b.m.HKeys(name); len(keys) > 200 {
			t.Errorf("%d fields are stored for one live hold", len(keys))
		}
		release(t, outer)
		b.free(t)
	})
}

// Many readers come and go, in either order. A late one enters a hash of expired holds.
func TestManyReaders(t *testing.T) {
	t.Parallel()
	few := effort.Of(200, 500, 1000)
	for what, n := range map[string]int{"last in first out": 2 * few, "first in first out": few} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				locks := make([]*locker.Lock, n)
				for i := range locks {
					locks[i] = b.read(t, locker.Request{TTL: time.Hour + time.Duration(i)*time.Millisecond})
				}
				b.holds(t, n, locker.Shared)
				for i := range locks {
					at := n - 1 - i
					if n == few {
						at = i
					}
					release(t, locks[at])
					if i%(few/2) == 0 {
						_, err := b.Acquire(t.Context(), noWait(writer))
						match(t, err, locker.ErrNotAcquired)
					}
				}
				b.free(t)
				for range 200 {
					b.read(t, locker.Request{TTL: time.Second})
				}
				release(t, b.read(t, locker.Request{TTL: time.Hour}))
				sleep(time.Second)
				if !b.m.Exists(name) {
					t.Error("the key has gone: this is about one that stays")
				}
				release(t, b.write(t, locker.Request{}))
				b.free(t)
			})
		})
	}
}

func TestBadConfig(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		_, err := rwhash.New(nil, rwhash.Config{})
		match(t, err, locker.ErrInvalid)
		for _, cfg := range []rwhash.Config{
			{TTL: -1}, {TTL: time.Millisecond}, {TTL: locker.MaxTTL + 1}, {AttemptTimeout: time.Microsecond},
			{Prefix: strings.Repeat("p", locker.MaxNameLen+1)},
			{WriterTurn: -1}, {WriterTurn: time.Millisecond}, {WriterTurn: time.Hour + 1},
		} {
			_, err := rwhash.New(b.drv, cfg)
			match(t, err, locker.ErrInvalid)
			if err != nil && !strings.Contains(err.Error(), "rwhash.Config.") {
				t.Errorf("%v does not name the field", err)
			}
		}
	})
}

// The key does not outlive its holds by much after a long hold has ended.
func TestKeyEndsWithItsHolds(t *testing.T) {
	t.Parallel()
	for what, n := range map[string]int{"few": 20, "many": 100} {
		t.Run(what, func(t *testing.T) {
			run(t, func(t *testing.T, b bench) {
				long := b.read(t, locker.Request{TTL: 24 * time.Hour})
				for range n {
					b.read(t, locker.Request{TTL: time.Second})
				}
				release(t, long)
				for range n {
					b.read(t, locker.Request{TTL: time.Second})
				}
				sleep(time.Second)
				b.free(t)
			})
		})
	}
}

// A refusal reports how long the holder's lease lasts, whatever it says about the next attempt. An
// intent has no lease.
func TestRefusalsTellTheLease(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		reader := b.read(t, locker.Request{TTL: time.Minute, Owner: "me"})
		sleep(10 * time.Second)
		writer := asWriter(locker.Request{})
		if left := b.refused(t, writer, "me", back); left != 50*time.Second {
			t.Errorf("%v left of a reader's lease, want 50s", left)
		}
		_, err := b.Acquire(t.Context(), writer)
		if want := `owner "me", for 50s at most unless renewed`; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if left := b.refused(t, asReader(locker.Request{}), "writer", back); left != 0 {
			t.Errorf("%v left of the lease of a writer who waits", left)
		}
		release(t, reader)
		b.write(t, locker.Request{TTL: 30 * time.Second})
		if left := b.refused(t, asReader(locker.Request{}), "writer", back); left != 30*time.Second {
			t.Errorf("%v left of a writer's lease, want 30s", left)
		}
	})
}

//realtime:ok each test runs in a bubble, by run of tools_test.go

package rwhash_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
)

// A waiting writer keeps new readers out for WriterTurn. Then readers enter for as long, though the
// writer still waits, and so on.
func TestWaitingWriterKeepsReadersOut(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.read(t, locker.Request{TTL: time.Hour, Owner: "old"})
		start := time.Now()
		for step := 200 * time.Millisecond; time.Since(start) < 4*bound; sleep(step) {
			if time.Since(start)%(2*step) == 0 {
				b.refused(t, writer, "old", back)
			}
			_, err := b.Acquire(t.Context(), asReader(locker.Request{NoWait: true, TTL: 100 * time.Millisecond}))
			out := time.Since(start)%(2*bound) < bound
			if out != errors.Is(err, locker.ErrNotAcquired) || !out && err != nil {
				t.Errorf("%v after the writer began to wait, a new reader gets %v; kept out: %v", time.Since(start), err, out)
			}
			match(t, old.Renew(t.Context(), 0))
		}
		release(t, old)
		release(t, b.write(t, locker.Request{}))
		b.free(t)
	})
}

// A refusal reports the holder, and a time for the next attempt before the intent expires, or
// earlier if there is a reason.
func TestRefusedByIntent(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.read(t, locker.Request{TTL: bound + 300*time.Millisecond, Owner: "old"})
		b.refused(t, asWriter(locker.Request{Owner: "w1"}), "old", back)
		b.refused(t, noWait(reader), "w1", life)
		check.Equal(t, "lease of a writer who waits", b.refused(t, reader, "w1", back), 0)
		for range 12 {
			sleep(back)
			b.refused(t, asWriter(locker.Request{Owner: "w2"}), "old", back)
		}
		b.refused(t, reader, "w2", bound-12*back)
		sleep(bound - 12*back)
		b.refused(t, writer, "old", 300*time.Millisecond)
		release(t, b.read(t, locker.Request{}), old)
		release(t, b.write(t, locker.Request{}))
		b.free(t)
	})
}

// When a writer stops waiting, readers enter within a second. A NoWait writer never keeps them out.
func TestIntentLapses(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.read(t, locker.Request{TTL: time.Hour, Owner: "old"})
		b.refused(t, noWait(writer), "old", time.Hour)
		release(t, b.read(t, locker.Request{}))
		b.refused(t, writer, "old", back)
		sleep(life - time.Millisecond)
		b.refused(t, noWait(reader), "writer", time.Millisecond)
		sleep(time.Millisecond)
		release(t, b.read(t, locker.Request{}))

		// A turn that was not used up does not begin anew: the next writer gets what is left of it.
		b.refused(t, writer, "old", back)
		sleep(back)
		b.refused(t, noWait(reader), "writer", life-back)
		release(t, old)
		b.refused(t, noWait(reader), "writer", life-back) // the lock is free: the writer comes first
		check.Equal(t, "TTL of the key of a free lock", b.m.TTL(name), life-back)
		sleep(life - back)
		b.free(t)
		release(t, b.read(t, locker.Request{}))
		b.free(t)
	})
}

// After a writer the readers that waited for it have their turn, and so do those that were woken
// with the first of them. Then it is the next writer's.
func TestReadersTurn(t *testing.T) {
	tests := map[string]time.Duration{"released": 0, "expired": 500 * time.Millisecond}
	eachRun(t, tests, func(t *testing.T, b bench, ended time.Duration) {
		first := b.write(t, locker.Request{TTL: 10 * time.Second, Owner: "first"})
		b.refused(t, writer, "first", 10*time.Second)
		b.refused(t, noWait(reader), "first", 10*time.Second)
		sleep(9500 * time.Millisecond)
		b.refused(t, reader, "first", back)
		if sleep(ended); ended == 0 {
			release(t, first)
		}
		b.refused(t, writer, "reader", back)
		b.refused(t, noWait(writer), "reader", life-ended)
		one := b.read(t, locker.Request{Owner: "one"})
		sleep(herd - time.Millisecond)
		two := b.read(t, locker.Request{Owner: "two"})
		sleep(time.Millisecond)
		b.refused(t, noWait(reader), "writer", life-herd)
		release(t, one, two)
		b.refused(t, noWait(reader), "writer", life-herd)
		release(t, b.write(t, locker.Request{}))
		b.free(t)
	})
}

// When readers stop waiting, writers enter.
func TestReadersIntentLapses(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		first := b.write(t, locker.Request{})
		b.refused(t, reader, "writer", back)
		release(t, first)
		b.refused(t, noWait(writer), "reader", life)
		sleep(life)
		check.Equal(t, "the key outlives the intent", b.m.Exists(name), false)
		second := b.write(t, locker.Request{})
		b.refused(t, noWait(reader), "writer", locker.DefaultTTL)
		release(t, second)
		b.free(t)
	})
}

// Where readers and writers never pause, waiters that learn late of a turn get one now and then.
func TestLongTurn(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		start := time.Now()
		for {
			first := b.write(t, locker.Request{Owner: "first"})
			b.refused(t, asReader(locker.Request{Owner: "far"}), "first", back)
			sleep(50 * time.Millisecond)
			release(t, first)
			b.refused(t, writer, "far", back)
			near := b.read(t, locker.Request{})
			sleep(herd)
			far, err := b.Acquire(t.Context(), asReader(locker.Request{Owner: "far"}))
			if err == nil {
				release(t, near, far)
				break // it is a long turn
			}
			release(t, near)
			if time.Since(start) > 2*bound {
				t.Fatal("there is no long turn")
			}
		}
		check.AtLeast(t, "time until the first long turn", time.Since(start), bound)
		sleep(back)
		far := b.read(t, locker.Request{Owner: "far"})
		release(t, far)
		check.Error(t, "a writer in the long turn", check.ErrOf(b.Acquire(t.Context(), writer)), locker.ErrNotAcquired)
		sleep(100 * time.Millisecond)
		release(t, b.write(t, locker.Request{}))
		b.free(t)
	})
}

// Of the waiting writers the one that has waited longest is next. Meanwhile new writers are
// refused, and readers are not.
func TestLongestWaitingWriterIsNext(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		waits := func(d time.Duration) func(owner string) error {
			ctx := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(-d)})
			return func(owner string) error {
				lock, err := b.Acquire(ctx, asWriter(locker.Request{Owner: owner}))
				if err == nil {
					release(t, lock)
				}
				return err
			}
		}
		because := func(err error, owner string, again time.Duration) {
			t.Helper()
			if held, ok := errors.AsType[*locker.ContentionError](err); !ok || held.Owner != owner || held.RetryAfter != again {
				t.Errorf("%v, want it refused because of %q, to try again in %v", err, owner, again)
			}
		}
		first := b.write(t, locker.Request{Owner: "first"})
		young, old, middle := waits(time.Second), waits(5*time.Second), waits(3*time.Second)
		because(young("young"), "first", back)
		because(old("old"), "first", back)
		because(middle("middle"), "first", back)
		release(t, first)
		sleep(toTry - 50*time.Millisecond)
		because(young("young"), "old", 50*time.Millisecond)
		b.refused(t, noWait(writer), "old", life-toTry+50*time.Millisecond)
		release(t, b.read(t, locker.Request{}))
		beside := b.read(t, locker.Request{Owner: "beside"})
		because(old("old"), "beside", back)
		b.refused(t, noWait(reader), "old", life)
		release(t, beside)
		match(t, old("old"))
		b.free(t)

		// A writer that has waited longer than all before it enters at once, and the next one stays
		// next.
		first = b.write(t, locker.Request{Owner: "first"})
		because(middle("middle"), "first", back)
		release(t, first)
		match(t, old("old"))
		because(young("young"), "middle", toTry)
		sleep(life) // it gave up
		match(t, young("young"))
		b.free(t)

		// It is next also if the writer before it died.
		b.write(t, locker.Request{Owner: "died", TTL: 500 * time.Millisecond})
		because(old("old"), "died", back)
		sleep(500 * time.Millisecond)
		because(young("young"), "old", back)
		match(t, old("old"))
		b.free(t)
	})
}

// A writer behind a writer keeps its place as long as it tries again when it was told to.
func TestPatientWriterKeepsItsPlace(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		first := b.write(t, locker.Request{TTL: 20 * time.Second})
		old := lease.WithWaiting(t.Context(), lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(-5 * time.Second)})
		for range 5 {
			_, err := b.Acquire(old, writer)
			again := locktest.Refusal(t, err).RetryAfter
			check.AtMost(t, "time until the next attempt", again, back)
			sleep(again)
		}
		release(t, first)
		b.refused(t, asWriter(locker.Request{Owner: "young"}), "writer", toTry)
		release(t, locker.Must(b.Acquire(old, writer)))
		b.free(t)
	})
}

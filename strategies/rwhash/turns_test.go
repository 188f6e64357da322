//realtime:ok each test runs in a bubble, by run of tools_test.go

package rwhash_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// A waiting writer keeps new readers out for WriterTurn. Then readers enter for as long, though the
// writer still waits, and so on.
func TestWaitingWriterKeepsReadersOut(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.read(t, locker.Request{TTL: time.Hour, Owner: "old"})
		w := b.waits(t, writer, 0)
		start := time.Now()
		for step := 200 * time.Millisecond; time.Since(start) < 4*bound; sleep(step) {
			if time.Since(start)%(2*step) == 0 {
				w.refused(t, "old", 2*time.Second)
			}
			_, err := b.Acquire(t.Context(), asReader(locker.Request{NoWait: true, TTL: 100 * time.Millisecond}))
			out := time.Since(start)%(2*bound) < bound
			if out != errors.Is(err, locker.ErrNotAcquired) || !out && err != nil {
				t.Errorf("%v after the writer began to wait, a new reader gets %v; kept out: %v", time.Since(start), err, out)
			}
			match(t, old.Renew(t.Context(), 0))
		}
		release(t, old)
		release(t, w.acquired(t))
		b.free(t)
	})
}

// A reader refused for a waiting writer learns no owner, and the time left of the writer's turn.
func TestRefusedForAWaitingWriter(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.read(t, locker.Request{TTL: time.Hour, Owner: "old"})
		w := b.waits(t, writer, 0)
		w.refused(t, "old", 2*time.Second)
		check.Equal(t, "lease of a writer that waits", b.refused(t, noWait(reader), "", bound), 0)
		sleep(time.Second)
		b.refused(t, noWait(reader), "", bound-time.Second)
		b.refused(t, reader, "", polls)
		release(t, old)
		b.refused(t, noWait(reader), "", toTry) // the lock is free, and the writer was woken
		release(t, w.acquired(t))
		b.free(t)
	})
}

// A writer keeps no reader out once it has left, before it has waited, or if it does not wait. A
// dead one keeps readers out until its place expires.
func TestWriterThatLeft(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		old := b.read(t, locker.Request{TTL: time.Hour, Owner: "old"})
		b.refused(t, noWait(writer), "old", time.Hour)
		b.refused(t, writer, "old", time.Hour)
		release(t, b.read(t, locker.Request{}))
		w := b.waits(t, writer, 0)
		w.refused(t, "old", 2*time.Second)
		b.refused(t, noWait(reader), "", bound)
		b.Leave(name, w.id, func() {})
		sleep(time.Millisecond)
		release(t, b.read(t, locker.Request{}), old)
		b.free(t)

		old = b.read(t, locker.Request{TTL: time.Hour, Owner: "old"})
		w.refused(t, "old", 2*time.Second)
		sleep(places - 2*time.Millisecond)
		b.refused(t, noWait(reader), "", bound)
		sleep(2 * time.Millisecond)
		release(t, b.read(t, locker.Request{}), old)
		b.free(t)
	})
}

// After a writer, the readers waiting for it have their turn, with those woken with the first of
// them. Then it is the next writer's.
func TestReadersTurn(t *testing.T) {
	eachRun(t, map[string]bool{"released": false, "expired": true}, func(t *testing.T, b bench, expires bool) {
		first := b.write(t, locker.Request{TTL: 10 * time.Second, Owner: "first"})
		sleep(9500 * time.Millisecond)
		next, waiting := b.waits(t, writer, 0), b.waits(t, reader, 0)
		next.refused(t, "first", toTry)
		waiting.refused(t, "first", toTry)
		b.refused(t, noWait(reader), "first", toTry)
		if expires {
			sleep(toTry)
		} else {
			release(t, first)
		}
		next.refused(t, "", toTry)
		b.refused(t, noWait(writer), "", toTry)
		one := waiting.acquired(t)
		sleep(herd - time.Millisecond)
		two := b.read(t, locker.Request{Owner: "two"})
		sleep(time.Millisecond)
		b.refused(t, noWait(reader), "", bound)
		release(t, one, two)
		b.refused(t, noWait(reader), "", toTry)
		release(t, next.acquired(t))
		b.free(t)
	})
}

// Woken readers that do not come keep a free lock for as long as any woken waiter, unless the last
// reader of their process leaves.
func TestReadersThatDoNotCome(t *testing.T) {
	eachRun(t, map[string]bool{"frozen": false, "left": true}, func(t *testing.T, b bench, leaves bool) {
		first := b.write(t, locker.Request{})
		b.waits(t, reader, 0).refused(t, "writer", polls)
		release(t, first)
		b.refused(t, noWait(writer), "", toTry)
		check.Equal(t, "TTL of the key of a free lock", b.m.TTL(name), toTry)
		if leaves {
			b.Leave(name, "", func() {})
			sleep(11 * time.Millisecond)
		} else {
			sleep(toTry - time.Millisecond)
			b.refused(t, noWait(writer), "", time.Millisecond)
			sleep(time.Millisecond)
		}
		b.free(t)
		release(t, b.write(t, locker.Request{}))
		b.free(t)
	})
}

// If the first writer leaves while nobody holds the lock, the next one is woken.
func TestFirstWriterLeavesTheFreeLock(t *testing.T) {
	eachRun(t, map[string]bool{"in the readers' turn": false, "after it": true}, func(t *testing.T, b bench, after bool) {
		l := locker.Chain(b, locker.Must(retry.New(retry.Config{})))
		lock, w, r := b.write(t, locker.Request{}), b.waits(t, writer, time.Second), b.waits(t, reader, 0)
		w.refused(t, "writer", 2*time.Second)
		r.refused(t, "writer", polls)
		var wg sync.WaitGroup
		var got time.Time
		wg.Go(func() {
			second := locker.Must(l.Acquire(t.Context(), writer))
			got = time.Now()
			release(t, second)
		})
		sleep(herd)
		released := time.Now()
		release(t, lock)
		if after {
			release(t, r.acquired(t))
		}
		b.Leave(name, w.id, func() {})
		wg.Wait()
		check.AtMost(t, "time until the second writer got the lock", got.Sub(released), toTry+5*time.Millisecond)
	})
}

// The readers' turn after a downgrade does not end with the hold.
func TestTurnAfterADowngradeOutlivesTheHold(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		first := b.write(t, locker.Request{TTL: 200 * time.Millisecond})
		w, r := b.waits(t, writer, 0), b.waits(t, reader, 0)
		w.refused(t, "writer", 0)
		r.refused(t, "writer", 0)
		sleep(100 * time.Millisecond)
		match(t, first.Downgrade(t.Context()))
		sleep(200 * time.Millisecond)
		w.refused(t, "", toTry-200*time.Millisecond)
		release(t, r.acquired(t))
		release(t, w.acquired(t))
		b.free(t)
	})
}

// A reader that has waited for WriterTurn gets a long turn; other readers do not end it, since it
// may learn late of each turn.
func TestLongTurn(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		far, w1, w2 := b.waits(t, reader, bound-2*herd), b.waits(t, writer, 0), b.waits(t, writer, 0)
		cycle := func(lock *locker.Lock, next waiter) {
			t.Helper()
			far.refused(t, "writer", polls)
			next.refused(t, "writer", 2*time.Second)
			release(t, lock)
			release(t, b.read(t, locker.Request{Owner: "near"}))
			sleep(2 * herd)
		}
		cycle(b.write(t, locker.Request{}), w1)
		far.refused(t, "", toTry-2*herd) // the writer was woken
		cycle(w1.acquired(t), w2)
		next := w2
		next.refused(t, "", toTry-2*herd)
		release(t, b.read(t, locker.Request{Owner: "near"}))
		sleep(100 * time.Millisecond)
		release(t, far.acquired(t))
		next.refused(t, "", toTry-2*herd-100*time.Millisecond)
		sleep(toTry - 2*herd - 100*time.Millisecond)
		release(t, next.acquired(t))
		b.free(t)
	})
}

// A readers' turn ends when the server's clock is set back, however far ahead its end is then.
func TestTurnEndsWhenTheClockIsSetBack(t *testing.T) {
	eachRun(t, map[string]string{"a turn": "turn", "a turn that has begun": "bar"}, func(t *testing.T, b bench, field string) {
		old := b.read(t, locker.Request{Owner: "old"})
		w := b.waits(t, writer, 0)
		w.refused(t, "old", 2*time.Second)
		b.m.HSet(name, field, strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10))
		b.refused(t, noWait(reader), "", bound) // the writer keeps it out
		w.refused(t, "old", 2*time.Second)
		release(t, old)
		release(t, w.acquired(t))
		b.free(t)
	})
}

// The writer with the longest wait is next.
func TestLongestWaitingWriterIsNext(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		first := b.write(t, locker.Request{Owner: "first"})
		young, old, middle := b.waits(t, writer, time.Second), b.waits(t, writer, 5*time.Second), b.waits(t, writer, 3*time.Second)
		for _, w := range []waiter{young, old, middle} {
			w.refused(t, "first", 2*time.Second)
		}
		release(t, first)
		sleep(toTry - 50*time.Millisecond)
		young.refused(t, "", 50*time.Millisecond)
		b.refused(t, noWait(writer), "", 50*time.Millisecond)
		b.refused(t, noWait(reader), "", 50*time.Millisecond)
		release(t, old.acquired(t))
		young.refused(t, "", toTry)
		release(t, middle.acquired(t))
		release(t, young.acquired(t))

		// It is next also if the writer before it died.
		b.write(t, locker.Request{Owner: "died", TTL: 500 * time.Millisecond})
		old.refused(t, "died", 500*time.Millisecond)
		sleep(500 * time.Millisecond)
		young.refused(t, "", toTry)
		release(t, old.acquired(t))
		b.free(t)
	})
}

// A waiter is counted once, although its first attempt was a newcomer's.
func TestWaitersAreCountedOnce(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		lock := b.write(t, locker.Request{})
		for _, w := range []waiter{b.waits(t, writer, 0), b.waits(t, writer, 0), b.waits(t, reader, 0)} {
			if w.req.Mode == locker.Exclusive {
				b.refused(t, w.req, "writer", locker.DefaultTTL)
			}
			w.refused(t, "writer", 0)
		}
		check.Equal(t, "waiters with places", locker.Must(b.Inspect(t.Context(), name)).Waiters, 2)
		release(t, lock)
	})
}

// A reader with a round trip of 30 ms enters beside a near reader and two writers without pauses,
// though it learns late of each release.
func TestFarReaderGetsIn(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		start, far, near := time.Now(), b.waits(t, reader, 0), b.waits(t, reader, 0)
		w := b.write(t, locker.Request{})
		for time.Since(start) < 3*bound {
			next := b.waits(t, writer, 0)
			near.refused(t, "writer", 0)
			next.refused(t, "writer", 0)
			far.refused(t, "writer", 0)
			sleep(300 * time.Millisecond)
			release(t, w)
			lock := near.acquired(t)
			next.refused(t, "reader", 0)
			sleep(5 * time.Millisecond)
			release(t, lock)
			writes, err := next.try(t)
			sleep(25 * time.Millisecond)
			if err != nil {
				release(t, far.acquired(t)) // it is a long turn
				return
			}
			w = writes
		}
		t.Errorf("the far reader did not get in for %v", time.Since(start))
		release(t, w)
	})
}

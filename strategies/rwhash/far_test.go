package rwhash_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// A reader with a round trip of 30 ms enters beside a near reader and two writers without pauses,
// though it learns late of each release.
func TestFarReaderGetsIn(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		start, far := time.Now(), asReader(locker.Request{Owner: "far"})
		waits := func(req locker.Request) {
			t.Helper()
			if lock, err := b.Acquire(t.Context(), req); err == nil {
				t.Errorf("%v %s was not refused", req.Mode, req.Owner)
				release(t, lock)
			}
		}
		w := b.write(t, locker.Request{})
		for time.Since(start) < 3*bound {
			waits(asReader(locker.Request{Owner: "near"}))
			waits(asWriter(locker.Request{Owner: "next"}))
			waits(far)
			sleep(300 * time.Millisecond) // within the far one's RetryAfter
			release(t, w)
			near := b.read(t, locker.Request{Owner: "near"})
			waits(asWriter(locker.Request{Owner: "next"}))
			sleep(5 * time.Millisecond)
			release(t, near)
			next, err := b.Acquire(t.Context(), asWriter(locker.Request{Owner: "next"}))
			sleep(25 * time.Millisecond)
			if err != nil {
				release(t, b.read(t, far)) // it is a long turn
				return
			}
			waits(far)
			w = next
		}
		t.Errorf("the far reader did not get in for %v", time.Since(start))
		release(t, w)
	})
}

// A turn is not mistaken for a long one if the readers' intent ends with it by chance.
func TestShortTurnOfTheSameEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, drv := locktest.Memory(t)
		b := bench{locker.Must(rwhash.New(drv, rwhash.Config{WriterTurn: life})), drv, m}
		w := b.write(t, locker.Request{})
		b.refused(t, reader, "writer", back)
		release(t, w)
		release(t, b.read(t, locker.Request{}))
		sleep(herd)
		release(t, b.write(t, locker.Request{}))
	})
}

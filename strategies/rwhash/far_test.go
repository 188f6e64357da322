package rwhash_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

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

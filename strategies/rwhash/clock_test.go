package rwhash_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// A step of the server's clock by the drift less 1 ms ends no lease before its Deadline. The
// millisecond is for the rounding to whole ones.
func TestDeadlineBearsAStep(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		sleep(999 * time.Microsecond)
		lock := b.read(t, locker.Request{TTL: time.Second})
		sleep(time.Until(lock.Deadline()) - time.Nanosecond)
		const drift = time.Second/100 + 2*time.Millisecond
		b.m.SetTime(time.Now().Add(drift - time.Millisecond))
		_, err := b.Acquire(t.Context(), noWait(writer))
		match(t, err, locker.ErrNotAcquired)
		match(t, lock.Err())
	})
}

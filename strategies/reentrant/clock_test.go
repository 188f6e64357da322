//realtime:ok each test runs in a bubble, by run of tools_test.go

package reentrant_test

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
		lock := b.me(t, locker.Request{TTL: time.Second})
		sleep(time.Until(lock.Deadline()) - time.Nanosecond)
		const drift = time.Second/100 + 2*time.Millisecond
		b.m.SetTime(time.Now().Add(drift - time.Millisecond))
		b.refused(t)
		if err := lock.Err(); err != nil {
			t.Errorf("before its Deadline: %v", err)
		}
	})
}

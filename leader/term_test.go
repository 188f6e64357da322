package leader

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// A term ends by the clock, also if nothing has noticed that yet: a process that was frozen may
// run other goroutines first when it wakes up.
func TestTermEndsByTheClock(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		lock := locker.Must(lockertest.New().Acquire(t.Context(), locker.Request{Name: "a", TTL: time.Minute, Fenced: true}))
		unnoticed := &term{lock: lock, ctx: t.Context()}
		if !unnoticed.leads() {
			t.Error("it does not lead at the beginning")
		}
		time.Sleep(time.Until(lock.Deadline())) //nolint:forbidigo // fake time
		if unnoticed.leads() {
			t.Error("it leads at its Deadline")
		}
	})
}

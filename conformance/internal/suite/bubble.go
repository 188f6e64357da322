package suite

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// stillAfter is when a running bubble is taken for a stopped one. Most end within a second; this is
// real time.
const stillAfter = 5 * time.Minute

// Bubble runs f in a bubble of testing/synctest: time passes at once. Name is f's, for reports. If
// all of f waits for ever, t fails. If a part of f waits in a way unknown to synctest, such as for
// a mutex, fake time stops, and Bubble panics with the stacks of all goroutines.
func Bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	still := time.AfterFunc(stillAfter, func() {
		stacks := make([]byte, 16<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		panic(fmt.Sprintf("%s has stood still for %v of real time\n\n%s", name, stillAfter, stacks))
	})
	defer still.Stop()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v", name, p) // a deadlock
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		// Clients end some of their goroutines after they were closed. Time stops with this goroutine.
		t.Cleanup(func() { time.Sleep(time.Minute) }) //nolint:forbidigo // fake time
		f(t)
	})
}

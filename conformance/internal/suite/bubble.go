package suite

import (
	"testing"
	"testing/synctest"
	"time"
)

// Bubble runs f in a bubble of testing/synctest: time passes at once. Name is f's, for reports. If
// all of f waits for ever, t fails. If a part of f waits in a way unknown to synctest, such as for
// a mutex, fake time stops: the time limit of go test ends it, with its name and all stacks.
func Bubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
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

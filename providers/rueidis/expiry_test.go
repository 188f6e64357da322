package rueidis

import (
	"testing"
	"testing/synctest"
	"time"
)

// Deadlines close to each other share a channel. It is closed after the deadline, at most grain
// later.
func TestExpiryOf(t *testing.T) {
	t.Parallel()
	const after = 3 * time.Second
	for name, c := range map[string]struct {
		later  time.Duration // than the first deadline
		shared bool
	}{
		"the same":     {0, true},
		"a bit later":  {grain, true},
		"later":        {grain + 1, false},
		"a bit sooner": {-1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n, start := newNode(false, true), time.Now()
				first := n.expiryOf(start.Add(after))
				e := n.expiryOf(start.Add(after + c.later))
				if shared := e == first; shared != c.shared {
					t.Errorf("shared: %v, want %v", shared, c.shared)
				}
				<-e.passed
				if late := time.Since(start) - (after + c.later); late < 0 || late > grain {
					t.Errorf("closed %v after the deadline", late)
				}
				<-first.passed
			})
		})
	}
}

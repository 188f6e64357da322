package workload

import (
	"sync"
	"time"
)

// Episode is a state with an end. The zero Episode is over. It is safe for concurrent use.
type Episode struct {
	mu    sync.Mutex
	until time.Time
}

// Extend makes e last for d from now, unless it lasts longer already.
func (e *Episode) Extend(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if until := time.Now().Add(d); until.After(e.until) {
		e.until = until
	}
}

// On reports whether e lasts.
func (e *Episode) On() bool { return e.left() > 0 }

// End ends e, and reports whether it lasted until now.
func (e *Episode) End() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	lasted := time.Now().Before(e.until)
	e.until = time.Time{}
	return lasted
}

// Wait sleeps until e is over.
func (e *Episode) Wait(sleep func(time.Duration)) {
	for d := e.left(); d > 0; d = e.left() {
		sleep(d)
	}
}

func (e *Episode) left() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Until(e.until)
}

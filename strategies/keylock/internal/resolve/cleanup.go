package resolve

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// openFor is the minimum of OpenFor: a frozen server may execute a command late.
const openFor = 30 * time.Second

// OpenFor is how long after its last send a command of unknown outcome may still be executed: ttl,
// at least 30 s.
func OpenFor(ttl time.Duration) time.Duration { return max(ttl, openFor) }

// Residue is a possible hold of an abandoned acquire, or after a release of unknown outcome.
type Residue struct {
	// Sends may still create the hold. Once they are settled the clean-up ends.
	Sends *Unanswered
	// Until ends the clean-up.
	Until time.Time
	// Timeout bounds each call of Remove.
	Timeout time.Duration
	// Remove removes the hold if it is there, and reports whether it did.
	Remove func(ctx context.Context) (removed bool, err error)
}

// CleanUp removes the hold in the background: at once when it is known to exist, and otherwise by
// repeated tries until nothing can be left or r.Until has passed. drv's Close makes it try once
// more, a second time 100 ms later if the first was answered, and end. All clean-ups of a driver
// share one scheduling goroutine, a limit of concurrent calls, and a limit of repetitions per second.
func CleanUp(drv driver.Driver, r Residue) {
	res := &residue{Residue: r, began: time.Now()}
	res.due = res.began
	if r.Sends.state().pending > 0 && r.Sends.state().present == 0 {
		res.due = res.began.Add(lateAnswerWait)
	}
	c, fresh := cleaners.enlist(drv, res)
	r.Sends.onAnswer(func() { c.answered(res) })
	c.answered(res) // an answer may just have come
	if fresh {
		c.start()
	}
}

// cleaners has a cleaner for each driver with residues.
var cleaners = registry{byDriver: map[driver.Driver]*cleaner{}}

type registry struct {
	mu       sync.Mutex
	byDriver map[driver.Driver]*cleaner
}

// enlist adds res to the cleaner of drv, and reports whether the cleaner is new and must be
// started. An incomparable driver gets a cleaner for each residue.
func (r *registry) enlist(drv driver.Driver, res *residue) (c *cleaner, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	shared := reflect.TypeOf(drv).Comparable()
	if shared {
		c = r.byDriver[drv]
	}
	if fresh = c == nil; fresh {
		c = newCleaner(drv)
		if shared {
			r.byDriver[drv] = c
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(res)
	return c, fresh
}

// dismiss removes c if it has no residues, and reports whether it did.
func (r *registry) dismiss(c *cleaner) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count > 0 {
		return false
	}
	if reflect.TypeOf(c.drv).Comparable() && r.byDriver[c.drv] == c {
		delete(r.byDriver, c.drv)
	}
	return true
}

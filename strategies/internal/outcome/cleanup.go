package outcome

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	cleanMin = 10 * time.Millisecond
	cleanMax = time.Second
	// openFor is how long a send of unknown outcome is reckoned with, at least: that long a frozen server may sit on it.
	openFor = 30 * time.Second
)

// OpenFor is how long after its last send a command of unknown outcome is reckoned with: ttl, at least 30 s.
func OpenFor(ttl time.Duration) time.Duration { return max(ttl, openFor) }

// Residue is what may be left of a hold that nobody wants any more.
type Residue struct {
	// Open is how many acquires of this hold may still be executed. With none, any answer to Delete ends the clean-up.
	Open int
	// Until ends the clean-up.
	Until time.Time
	// Timeout bounds each Delete.
	Timeout time.Duration
	// Delete removes the hold if it is there, and only then.
	Delete func(ctx context.Context) (deleted bool, err error)
}

// CleanUp repeats r.Delete in the background, at once and then from 10 ms doubling to 1 s, until nothing can be left or
// r.Until has passed. drv's Close makes it try once more and end.
func CleanUp(drv driver.Driver, r Residue) {
	b, ok := drv.(driver.Backgrounder)
	if !ok {
		go r.clean(context.Background())
		return
	}
	if !b.Background(r.clean) {
		_, _ = r.try() // the driver is closing: it may yet get through
	}
}

func (r Residue) clean(closing context.Context) {
	for delay := cleanMin; ; delay = min(2*delay, cleanMax) {
		deleted, err := r.try()
		if deleted {
			r.Open--
		}
		if err == nil && r.Open <= 0 || errors.Is(err, driver.ErrClosed) || closing.Err() != nil {
			return
		}
		if time.Now().Add(delay).After(r.Until) {
			return
		}
		wait(closing, delay)
	}
}

func (r Residue) try() (bool, error) {
	bound := driver.Bound(context.Background(), r.Timeout)
	defer bound.Stop()
	return r.Delete(bound)
}

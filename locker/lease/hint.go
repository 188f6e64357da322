package lease

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Hint is a strategy's advice to middleware/retry, in the ContentionError of a refused acquire. The
// zero Hint says to poll.
type Hint struct {
	// RetryAfter is the maximum time until the next attempt: what is left of the lease, or less if
	// the strategy asks waiters to retry sooner. Zero: unknown, as for a waiter without a stored
	// place in the queue.
	RetryAfter time.Duration
	// Channel is the channel of releases. Zero: unknown; poll.
	Channel driver.Channel
	// Queue: waiters with an ID ([Waiting]) have places in a queue at the server, and a release
	// wakes only the first one, on Channel.For(ID). A waiter that listens there need not retry
	// before RetryAfter, unless the holder is Foreign.
	Queue bool
	// Fair: the order of the queue is strict, and nobody passes the first waiter. If the strategy
	// has two modes, it is the order of the exclusive requests.
	Fair bool
	// Foreign: another library holds the lock. It may not publish its release.
	Foreign bool
	// Jitter is the maximum random delay before retrying after a wake-up. It keeps waiters from
	// colliding, as in a quorum. Zero: none.
	Jitter time.Duration
}

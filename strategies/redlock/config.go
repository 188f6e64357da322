package redlock

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
)

// Config configures a Locker. The zero Config works.
type Config struct {
	// Quorum is the number of nodes that must hold: more than half of them, up to all. Default: the
	// smallest majority, N/2 + 1.
	Quorum int
	// TTL is the TTL of a Request without one: 1 ms to 24 days, and more than MinValidity. Default:
	// 30 s.
	TTL time.Duration
	// MinValidity is the minimum time left of the lease when a lock is acquired or resumed.
	// Default: a tenth of the TTL.
	MinValidity time.Duration
	// AttemptTimeout bounds an acquire, a resume, a renewal and the other operations: a node
	// without an answer by then counts as failed. An acquire takes that long only if its outcome
	// depends on a node that does not answer. If it fails then, it waits up to one AttemptTimeout
	// more for the release of its node locks. At least 1 ms. Default: a tenth of the TTL, at most
	// 1 s.
	AttemptTimeout time.Duration
	// ReleaseTimeout is the maximum time for which Release, and so locker.Do, waits for the nodes.
	// After it the releases continue in the background. If ctx has ended, Release waits for one
	// AttemptTimeout at most. At least 1 ms. Default: two AttemptTimeouts.
	ReleaseTimeout time.Duration
	// WakeJitter is the maximum random delay of middleware/retry between a wake-up and the next
	// attempt: concurrent attempts may each acquire some of the nodes, and none a quorum. At least
	// 1 ns. Default: 10 ms.
	WakeJitter time.Duration
	// Names are the names of the nodes in errors, in their order. Default: the addresses of their
	// servers, once they are known.
	Names []string
}

const (
	defaultWakeJitter = 10 * time.Millisecond
	maxAttemptTimeout = time.Second
)

// validate checks c for n nodes.
func (c Config) validate(n int) error {
	if c.Quorum != 0 && (c.Quorum <= n/2 || c.Quorum > n) {
		return argument.Invalid("redlock.Config.Quorum", strconv.Itoa(c.Quorum),
			fmt.Sprintf("%d to %d of %d nodes, or 0 for %d", n/2+1, n, n, n/2+1))
	}
	if c.TTL != 0 && (c.TTL < locker.MinTTL || c.TTL > locker.MaxTTL) {
		return argument.Invalid("redlock.Config.TTL", c.TTL.String(), "1ms to 576h (24 days), or 0 for 30s")
	}
	if c.MinValidity < 0 || c.MinValidity >= cmp.Or(c.TTL, locker.DefaultTTL) {
		return argument.Invalid("redlock.Config.MinValidity", c.MinValidity.String(),
			"less than the TTL, or 0 for a tenth of it")
	}
	if c.AttemptTimeout != 0 && c.AttemptTimeout < time.Millisecond {
		return argument.Invalid("redlock.Config.AttemptTimeout", c.AttemptTimeout.String(),
			"1ms or more, or 0 for a tenth of the TTL, at most 1s")
	}
	if c.ReleaseTimeout != 0 && c.ReleaseTimeout < time.Millisecond {
		return argument.Invalid("redlock.Config.ReleaseTimeout", c.ReleaseTimeout.String(),
			"1ms or more, or 0 for two AttemptTimeouts")
	}
	if c.WakeJitter < 0 {
		return argument.Invalid("redlock.Config.WakeJitter", c.WakeJitter.String(), "a positive duration, or 0 for 10ms")
	}
	if len(c.Names) != 0 && len(c.Names) != n {
		return argument.Invalid("redlock.Config.Names", fmt.Sprintf("%d names", len(c.Names)),
			fmt.Sprintf("one for each of %d nodes, or none", n))
	}
	return nil
}

// ttl returns the lease of a Request, in whole milliseconds, as the nodes' is.
func (c Config) ttl(asked time.Duration) time.Duration {
	return cmp.Or(asked, c.TTL, locker.DefaultTTL).Truncate(time.Millisecond)
}

func (c Config) minValidity(ttl time.Duration) time.Duration { return cmp.Or(c.MinValidity, ttl/10) }

func (c Config) attemptTimeout(ttl time.Duration) time.Duration {
	return cmp.Or(c.AttemptTimeout, max(min(ttl/10, maxAttemptTimeout), time.Millisecond))
}

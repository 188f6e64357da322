package single

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Config configures a Locker. The zero Config works.
type Config struct {
	// Prefix stands before every name to make the key; at most 1024 bytes. Default: none, so that the key is the name and
	// other libraries contend on it.
	Prefix string
	// TTL is what a Request without a TTL gets: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the lock's TTL, at most 3 s.
	AttemptTimeout time.Duration
}

// maxAttemptTimeout is the default's upper bound.
const maxAttemptTimeout = 3 * time.Second

// minTTL is the shortest lease of which the allowance for drift leaves anything.
const minTTL = 3 * time.Millisecond

func (c Config) validate() error {
	if c.TTL != 0 && (c.TTL < minTTL || c.TTL > locker.MaxTTL) {
		return driver.Invalid("single.Config.TTL", c.TTL.String(), "3ms to 576h (24 days), or 0 for 30s")
	}
	if c.AttemptTimeout != 0 && c.AttemptTimeout < time.Millisecond {
		return driver.Invalid("single.Config.AttemptTimeout", c.AttemptTimeout.String(), "1ms or more, or 0 for a third of the TTL, at most 3s")
	}
	if len(c.Prefix) > locker.MaxNameLen {
		return driver.Invalid("single.Config.Prefix", fmt.Sprintf("%d bytes", len(c.Prefix)), "at most 1024 bytes")
	}
	return nil
}

// ttl is the lease that a Request gets, in whole milliseconds.
func (c Config) ttl(asked time.Duration) time.Duration {
	switch {
	case asked != 0:
	case c.TTL != 0:
		asked = c.TTL
	default:
		asked = locker.DefaultTTL
	}
	return asked.Truncate(time.Millisecond)
}

func (c Config) attemptTimeout(ttl time.Duration) time.Duration {
	if c.AttemptTimeout != 0 {
		return c.AttemptTimeout
	}
	return max(min(ttl/3, maxAttemptTimeout), time.Millisecond)
}

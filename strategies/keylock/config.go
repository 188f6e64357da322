package keylock

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Config is what the Config of every such strategy has; they document it.
type Config struct {
	Prefix         string
	TTL            time.Duration
	AttemptTimeout time.Duration
	MinReplicas    int
	ReplicaTimeout time.Duration
}

// maxAttemptTimeout is the default's upper bound.
const maxAttemptTimeout = 3 * time.Second

// minTTL is the shortest lease of which the allowance for drift leaves anything.
const minTTL = 3 * time.Millisecond

// validate names the strategy in its errors.
func (c Config) validate(strategy string) error {
	if c.TTL != 0 && (c.TTL < minTTL || c.TTL > locker.MaxTTL) {
		return driver.Invalid(strategy+".Config.TTL", c.TTL.String(), "3ms to 576h (24 days), or 0 for 30s")
	}
	if c.AttemptTimeout != 0 && c.AttemptTimeout < time.Millisecond {
		return driver.Invalid(strategy+".Config.AttemptTimeout", c.AttemptTimeout.String(), "1ms or more, or 0 for a third of the TTL, at most 3s")
	}
	if c.MinReplicas < 0 {
		return driver.Invalid(strategy+".Config.MinReplicas", strconv.Itoa(c.MinReplicas), "1 or more, or 0 to ask for none")
	}
	if c.ReplicaTimeout < 0 || c.ReplicaTimeout > 0 && c.ReplicaTimeout < time.Millisecond {
		return driver.Invalid(strategy+".Config.ReplicaTimeout", c.ReplicaTimeout.String(), "1ms or more, or 0 for half of the attempt's timeout")
	}
	if attempt := c.attemptTimeout(c.ttl(0)); !c.fits(attempt) {
		return driver.Invalid(strategy+".Config.ReplicaTimeout", c.replicaTimeout(attempt).String(), "1ms or more, and shorter than an attempt, which has "+attempt.String())
	}
	if len(c.Prefix) > locker.MaxNameLen {
		return driver.Invalid(strategy+".Config.Prefix", fmt.Sprintf("%d bytes", len(c.Prefix)), "at most 1024 bytes")
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

// replicaTimeout is how long replicas have to acknowledge what an attempt wrote, in whole milliseconds.
func (c Config) replicaTimeout(attempt time.Duration) time.Duration {
	return cmp.Or(c.ReplicaTimeout, attempt/2).Truncate(time.Millisecond)
}

// fits tells whether an attempt leaves the replicas time, and itself for more than them. WAIT 0 would be for ever.
func (c Config) fits(attempt time.Duration) bool {
	within := c.replicaTimeout(attempt)
	return c.MinReplicas == 0 || within >= time.Millisecond && within < attempt
}

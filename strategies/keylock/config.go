package keylock

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
	// Prefix is put before every name to make the key; at most 1024 bytes. Default: none, the key
	// is the name.
	Prefix string
	// TTL is for a Request without a TTL: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the lock's
	// TTL, at most 3 s.
	AttemptTimeout time.Duration
	// ReleaseTimeout is the maximum time for which Release, and so locker.Do, waits for the answer.
	// After it the outcome is unknown, and the release continues in the background. If ctx has
	// ended, Release waits for one AttemptTimeout at most. At least 1 ms. Default: two
	// AttemptTimeouts.
	ReleaseTimeout time.Duration
	// MinReplicas is how many replicas must acknowledge an acquire, a resume, a renewal or an
	// upgrade before it counts. They are asked by WAIT, in the same round trip. Default: 0, none.
	// If the driver cannot send WAIT, acquires return errors.ErrUnsupported.
	MinReplicas int
	// ReplicaTimeout is how long the replicas have for it; at least 1 ms, and less than an attempt.
	// Default: half of the attempt's timeout.
	ReplicaTimeout time.Duration
	// Fair makes the order of waiters strict: while somebody waits, only the longest waiter gets
	// the lock. It needs a Spec with Queue. Default: newcomers may take a free lock.
	Fair bool
}

const (
	// maxAttemptTimeout is the upper bound of the default.
	maxAttemptTimeout = 3 * time.Second
	// minTTL is the shortest lease: the allowance for drift would use up a shorter one.
	minTTL = 3 * time.Millisecond
)

// check returns an error for a bad field. The error names the strategy.
func (c Config) check(strategy string) error {
	invalid := func(field, got, allowed string) error {
		return argument.Invalid(strategy+".Config."+field, got, allowed)
	}
	attempt := c.attemptTimeout(c.ttl(0))
	switch {
	case c.TTL != 0 && (c.TTL < minTTL || c.TTL > locker.MaxTTL):
		return invalid("TTL", c.TTL.String(), "3ms to 576h (24 days), or 0 for 30s")
	case c.AttemptTimeout != 0 && c.AttemptTimeout < time.Millisecond:
		return invalid("AttemptTimeout", c.AttemptTimeout.String(),
			"1ms or more, or 0 for a third of the TTL, at most 3s")
	case c.ReleaseTimeout != 0 && c.ReleaseTimeout < time.Millisecond:
		return invalid("ReleaseTimeout", c.ReleaseTimeout.String(), "1ms or more, or 0 for two AttemptTimeouts")
	case c.MinReplicas < 0:
		return invalid("MinReplicas", strconv.Itoa(c.MinReplicas), "1 or more, or 0 to ask for none")
	case c.ReplicaTimeout < 0 || c.ReplicaTimeout > 0 && c.ReplicaTimeout < time.Millisecond:
		return invalid("ReplicaTimeout", c.ReplicaTimeout.String(),
			"1ms or more, or 0 for half of the attempt's timeout")
	case !c.leavesReplicasTime(attempt):
		return invalid("ReplicaTimeout", c.replicaTimeout(attempt).String(),
			"1ms or more, and shorter than an attempt, which has "+attempt.String())
	case len(c.Prefix) > locker.MaxNameLen:
		return invalid("Prefix", fmt.Sprintf("%d bytes", len(c.Prefix)), "at most 1024 bytes")
	}
	return nil
}

// checkTTL returns an error if a lock cannot have a lease of ttl; 0 is the default.
func (l *Locker) checkTTL(ttl time.Duration) error {
	if ttl != 0 && ttl < minTTL {
		return argument.Invalid("Request.TTL", ttl.String(),
			"3ms or more: the allowance for drift uses up a shorter lease")
	}
	if attempt := l.cfg.attemptTimeout(l.cfg.ttl(ttl)); !l.cfg.leavesReplicasTime(attempt) {
		return argument.Invalid("Request.TTL", ttl.String(),
			fmt.Sprintf("one whose attempts take longer than the replicas have: %v of %v",
				l.cfg.replicaTimeout(attempt), attempt))
	}
	return nil
}

// ttl returns the lease of a request with the TTL asked, in whole milliseconds.
func (c Config) ttl(asked time.Duration) time.Duration {
	return cmp.Or(asked, c.TTL, locker.DefaultTTL).Truncate(time.Millisecond)
}

func (c Config) attemptTimeout(ttl time.Duration) time.Duration {
	if c.AttemptTimeout != 0 {
		return c.AttemptTimeout
	}
	return max(min(ttl/3, maxAttemptTimeout), time.Millisecond)
}

// replicaTimeout returns the replicas' time for an acknowledgement, in whole milliseconds.
func (c Config) replicaTimeout(attempt time.Duration) time.Duration {
	return cmp.Or(c.ReplicaTimeout, attempt/2).Truncate(time.Millisecond)
}

// leavesReplicasTime reports whether an attempt leaves the replicas time, and more for itself. WAIT
// with a timeout of 0 would wait for ever.
func (c Config) leavesReplicasTime(attempt time.Duration) bool {
	within := c.replicaTimeout(attempt)
	return c.MinReplicas == 0 || within >= time.Millisecond && within < attempt
}

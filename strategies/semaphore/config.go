package semaphore

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
)

// MaxPermits is the highest Config.Permits.
const MaxPermits = 1_000_000_000

// Config configures a Locker. Permits is required.
type Config struct {
	// Permits is the limit: the maximum number of permits of a name that are held at a time. It is
	// required: 1 to MaxPermits. All Lockers of a name must have the same limit, or set Resize.
	Permits int
	// Resize lets an acquire that finds another limit replace it by Permits. See "Changing the
	// limit" in the package comment. Default: such an acquire returns a *LimitError.
	Resize bool

	// Prefix is put before every name to make the key; at most 1024 bytes. Default: none, the key
	// is the name.
	Prefix string
	// TTL is for a Request without a TTL: 3 ms to 24 days. Default: 30 s.
	TTL time.Duration
	// AttemptTimeout bounds each send of a command; at least 1 ms. Default: a third of the hold's
	// TTL, at most 3 s.
	AttemptTimeout time.Duration
	// ReleaseTimeout is the maximum time for which Release, and so locker.Do, waits for the answer.
	// After it the outcome is unknown, and the release continues in the background. If ctx has
	// ended, Release waits for one AttemptTimeout at most. At least 1 ms. Default: two
	// AttemptTimeouts.
	ReleaseTimeout time.Duration
	// MinReplicas is how many replicas must acknowledge an acquire, a resume or a renewal before it
	// counts. They are asked by WAIT, in the same round trip. See package single. Default: 0, none.
	// Over a driver without WAIT, acquires return errors.ErrUnsupported.
	MinReplicas int
	// ReplicaTimeout is how long the replicas have for it; at least 1 ms, and less than an attempt.
	// Default: half of the attempt's timeout.
	ReplicaTimeout time.Duration
}

// extraArgs returns the scripts' arguments beyond those of a lock.
func (c Config) extraArgs() ([]string, error) {
	if c.Permits < 1 || c.Permits > MaxPermits {
		return nil, argument.Invalid("semaphore.Config.Permits", strconv.Itoa(c.Permits),
			fmt.Sprintf("1 to %d", MaxPermits))
	}
	resize := ""
	if c.Resize {
		resize = "1"
	}
	return []string{strconv.Itoa(c.Permits), resize}, nil
}

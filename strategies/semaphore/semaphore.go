package semaphore

import (
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// Locker is the strategy over one driver. Inspect returns the owner, the note and the remaining
// lease of the hold that ends last, the number of holds, the limit, and the number of free permits.
// It returns an error for a key that is not a semaphore. State.Fence is zero, since each hold has a
// fencing token of its own.
//
// It is the type [keylock.Locker]. Programs call Acquire, and the functions of package locker: Do,
// DoAll, Inspect, Watch, Break. The other methods are for these functions and for middleware.
type Locker = keylock.Locker

// LimitError is returned by an acquire that finds another limit than Config.Permits, unless
// Config.Resize is set. It has both limits. It is not contention, so middleware/retry does not
// wait.
type LimitError = keylock.LimitError

// New returns a Locker that acquires permits through drv. It sends nothing. The error matches
// locker.ErrInvalid if drv is nil or a field of cfg is out of its range.
func New(drv driver.Driver, cfg Config) (*Locker, error) {
	extra, err := cfg.extraArgs()
	if err != nil {
		return nil, err
	}
	own := spec
	own.Permits, own.ExtraArgs = cfg.Permits, extra
	return keylock.New(drv, keylock.Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout, ReleaseTimeout: cfg.ReleaseTimeout,
		MinReplicas: cfg.MinReplicas, ReplicaTimeout: cfg.ReplicaTimeout, Fair: true,
	}, own)
}

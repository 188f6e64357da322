package single

import (
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// Locker is the strategy over one driver. Inspect answers with an error for a key of another type.
//
// It is the type [keylock.Locker]. Programs call Acquire, and the functions of package locker: Do,
// DoAll, Inspect, Watch, Break. The other methods are for these functions and for middleware.
type Locker = keylock.Locker

// New returns a Locker that locks through drv. Errors: ErrInvalid.
func New(drv driver.Driver, cfg Config) (*Locker, error) {
	s, err := spec, error(nil)
	if cfg.Signal != 0 {
		s, err = withSignal(s, cfg.Signal, cfg.Prefix)
	}
	if err == nil && cfg.Keyspace != "" {
		s, err = withKeyspace(s, cfg.Keyspace)
	}
	if err != nil {
		return nil, err
	}
	return keylock.New(drv, keylock.Config{
		Prefix: cfg.Prefix, TTL: cfg.TTL, AttemptTimeout: cfg.AttemptTimeout, ReleaseTimeout: cfg.ReleaseTimeout,
		MinReplicas: cfg.MinReplicas, ReplicaTimeout: cfg.ReplicaTimeout, Fair: cfg.Fair,
	}, s)
}

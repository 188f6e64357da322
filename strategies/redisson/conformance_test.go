package redisson_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/conformance"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Conformance(t, "redisson", conformance.Harness{
		New: func(drv driver.Driver, bound conformance.Timeouts) (locker.Locker, error) {
			return redisson.New(drv, redisson.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
		},
		NewQuorum: func(nodes []locker.Locker, need int, bound conformance.Timeouts) (locker.Locker, error) {
			return redlock.New(nodes, redlock.Config{Quorum: need, AttemptTimeout: 3 * bound.Attempt})
		},
		Can: conformance.Capabilities{Hash: true, MinHold: true, ReleaseTimeout: true, EndlessCounter: true},
		Siblings: &conformance.Siblings{
			FenceKey:    func(name string) string { return beside("redisson_lock_token:", name) },
			IsFenceKey:  func(key string) bool { return strings.HasPrefix(key, "redisson_lock_token:") },
			WakeChannel: func(name string) string { return beside("redisson_lock__channel:", name) },
		},
	})
}

// beside is prefixName of Redisson's RedissonObject. It returns "" for a name whose key would be in
// another slot of a cluster.
func beside(prefix, name string) string {
	switch {
	case !strings.Contains(name, "{"):
		return prefix + "{" + name + "}"
	case !strings.Contains(name, "}"):
		return ""
	default:
		return prefix + name
	}
}

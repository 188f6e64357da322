package timers

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/logging"
	"github.com/holdfast-go/holdfast/middleware/metrics"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// nodes is how many servers there are. All but redlock use the first alone.
const nodes = 3

// strategy makes Lockers over drivers, one for each server. within is the AttemptTimeout, 0 for the
// default.
type strategy struct {
	name string
	open func(drvs []driver.Driver, within time.Duration) locker.Locker

	converts bool // its locks can be downgraded and upgraded
	watches  bool // it renews by itself
}

var strategies = []strategy{
	{"single", func(drvs []driver.Driver, within time.Duration) locker.Locker {
		return locker.Must(single.New(drvs[0], single.Config{AttemptTimeout: within}))
	}, false, false},
	{"reentrant", func(drvs []driver.Driver, within time.Duration) locker.Locker {
		return locker.Must(reentrant.New(drvs[0], reentrant.Config{AttemptTimeout: within}))
	}, false, false},
	{"rwhash", func(drvs []driver.Driver, within time.Duration) locker.Locker {
		return locker.Must(rwhash.New(drvs[0], rwhash.Config{AttemptTimeout: within}))
	}, true, false},
	{"semaphore", func(drvs []driver.Driver, within time.Duration) locker.Locker {
		return locker.Must(semaphore.New(drvs[0], semaphore.Config{Permits: 1, AttemptTimeout: within}))
	}, false, false},
	{"watchdog", func(drvs []driver.Driver, within time.Duration) locker.Locker {
		return locker.Must(watchdog.New(watchdog.Config{}))(locker.Must(single.New(drvs[0], single.Config{AttemptTimeout: within})))
	}, false, true},
	{"redlock", quorum(func(drv driver.Driver, within time.Duration) locker.Locker {
		return locker.Must(rwhash.New(drv, rwhash.Config{AttemptTimeout: within}))
	}), true, false},
}

// quorum makes a redlock of node's lockers.
func quorum(node func(driver.Driver, time.Duration) locker.Locker) func([]driver.Driver, time.Duration) locker.Locker {
	return func(drvs []driver.Driver, within time.Duration) locker.Locker {
		over := make([]locker.Locker, len(drvs))
		for i, drv := range drvs {
			over[i] = node(drv, within)
		}
		return locker.Must(redlock.New(over, redlock.Config{AttemptTimeout: within}))
	}
}

// chain puts all middleware around l.
func chain(l locker.Locker) locker.Locker {
	return locker.Chain(l,
		tracing.New(tracing.Config{}),
		locker.Must(metrics.New(metrics.Config{})),
		locker.Must(logging.New(logging.Config{Logger: slog.New(slog.DiscardHandler), SlowWait: time.Hour})),
		locker.Must(retry.New(retry.Config{})),
	)
}

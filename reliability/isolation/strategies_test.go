package isolation

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// strategy is a column of the table.
type strategy struct {
	name    string
	open    func(driver.Driver) (locker.Locker, error) // over one node
	nodes   int
	permits int // holds possible at once

	callers int           // of each process
	held    time.Duration // how long a caller holds
	pause   time.Duration // before it acquires again
	readers bool          // every second caller asks for a shared hold
	watched bool          // strategies/watchdog renews

	longest time.Duration // how long a wait takes at most without a fault
	keeps   float64       // the part of the other processes' rate that they keep
	gains   float64       // the part of it that they get if the faulty process uses the lock no more
}

var strategies = []strategy{
	{
		name: "single", nodes: 1, permits: 1, callers: 2,
		held: 100 * time.Millisecond, longest: 1000 * time.Millisecond, keeps: 0.8, gains: 1.05,
		open: func(drv driver.Driver) (locker.Locker, error) { return single.New(drv, single.Config{}) },
	},
	{
		name: "fair", nodes: 1, permits: 1, callers: 2,
		held: 100 * time.Millisecond, longest: 900 * time.Millisecond, keeps: 0.8, gains: 1.05,
		open: func(drv driver.Driver) (locker.Locker, error) { return single.New(drv, single.Config{Fair: true}) },
	},
	{
		name: "semaphore", nodes: 1, permits: 2, callers: 2,
		held: 200 * time.Millisecond, longest: time.Second, keeps: 0.8, gains: 0.8,
		open: func(drv driver.Driver) (locker.Locker, error) {
			return semaphore.New(drv, semaphore.Config{Permits: 2})
		},
	},
	{
		name: "reentrant", nodes: 1, permits: 1, callers: 2,
		held: 100 * time.Millisecond, longest: 1000 * time.Millisecond, keeps: 0.8, gains: 1.05,
		open: func(drv driver.Driver) (locker.Locker, error) { return reentrant.New(drv, reentrant.Config{}) },
	},
	{
		name: "rwhash", nodes: 1, permits: 1, callers: 2, readers: true,
		held: 200 * time.Millisecond, longest: 2500 * time.Millisecond, keeps: 0.8, gains: 0.8,
		open: func(drv driver.Driver) (locker.Locker, error) { return rwhash.New(drv, rwhash.Config{}) },
	},
	{
		name: "watchdog", nodes: 1, permits: 1, callers: 2, watched: true,
		held: 100 * time.Millisecond, longest: 1100 * time.Millisecond, keeps: 0.8, gains: 1.05,
		open: func(drv driver.Driver) (locker.Locker, error) { return single.New(drv, single.Config{}) },
	},
	{
		// There is no order: without a pause, one caller acquires again and again, and the others wait.
		name: "redlock", nodes: 5, permits: 1, callers: 1, pause: 25 * time.Millisecond,
		held: 200 * time.Millisecond, longest: 5 * time.Second, keeps: 0.7, gains: 0.8,
		open: func(drv driver.Driver) (locker.Locker, error) { return single.New(drv, single.Config{}) },
	},
}

// locker makes the Locker of a process from its drivers, one for each node.
func (s strategy) locker(drivers []driver.Driver) (locker.Locker, error) {
	nodes := make([]locker.Locker, len(drivers))
	for i, drv := range drivers {
		var err error
		if nodes[i], err = s.open(drv); err != nil {
			return nil, fmt.Errorf("node %d: %w", i, err)
		}
	}
	l := nodes[0]
	if len(nodes) > 1 {
		var err error
		if l, err = redlock.New(nodes, redlock.Config{}); err != nil {
			return nil, err
		}
	}
	wait, err := retry.New(retry.Config{})
	if err != nil {
		return nil, err
	}
	middleware := []locker.Middleware{wait}
	if s.watched {
		renew, err := watchdog.New(watchdog.Config{})
		if err != nil {
			return nil, err
		}
		middleware = append(middleware, renew)
	}
	return locker.Chain(l, middleware...), nil
}

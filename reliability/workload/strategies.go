package workload

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Opener makes the Locker under test over one server.
type Opener func(driver.Driver) (locker.Locker, error)

// Strategy is a kind of lock under test.
type Strategy struct {
	Model history.Model
	Open  Opener
}

// Strategies are those with a lock in one key.
var Strategies = map[string]Strategy{
	"single":    {history.Exclusive, open(single.New)},
	"reentrant": {history.Reentrant, open(reentrant.New)},
	"rwhash":    {history.ReadWrite, open(rwhash.New)},
	"semaphore": {history.Semaphore, func(drv driver.Driver) (locker.Locker, error) {
		return semaphore.New(drv, semaphore.Config{Permits: Permits})
	}},
}

// Permits is the limit of semaphores.
const Permits = 3

// Fair are those of them with a strict order of waiters, if they can have one.
var Fair = map[string]Strategy{
	"single": {history.Exclusive, func(drv driver.Driver) (locker.Locker, error) {
		return single.New(drv, single.Config{Fair: true})
	}},
	"reentrant": {history.Reentrant, func(drv driver.Driver) (locker.Locker, error) {
		return reentrant.New(drv, reentrant.Config{Fair: true})
	}},
}

// How long after a waiter's last attempt the queue at the server may keep a free lock for it.
const (
	KeptForWoken = 500 * time.Millisecond
	KeptForFirst = 5 * time.Second // with a strict order
)

// open returns the Opener of a constructor, with the zero Config.
func open[L locker.Locker, C any](of func(driver.Driver, C) (L, error)) Opener {
	return func(drv driver.Driver) (locker.Locker, error) {
		var none C
		return of(drv, none)
	}
}

// Quorum makes a redlock with a node at each server.
func (o Opener) Quorum(drivers []driver.Driver) (locker.Locker, error) {
	nodes := make([]locker.Locker, len(drivers))
	for i, drv := range drivers {
		var err error
		if nodes[i], err = o(drv); err != nil {
			return nil, err
		}
	}
	return redlock.New(nodes, redlock.Config{})
}

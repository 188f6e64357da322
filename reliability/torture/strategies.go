package main

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// strategy is a kind of lock under test. It gets a driver for each server.
type strategy struct {
	model  history.Model
	quorum bool // over several servers
	flawed bool // tried only where it is asked for
	open   func([]driver.Driver) (locker.Locker, error)
}

var strategies = map[string]strategy{
	"single":         {model: history.Exclusive, open: overOne(openSingle)},
	"reentrant":      {model: history.Reentrant, open: overOne(openReentrant)},
	"rwhash":         {model: history.ReadWrite, open: overOne(openRWHash)},
	"redlock-single": {model: history.Exclusive, quorum: true, open: overAll(openSingle)},
	"redlock-rwhash": {model: history.ReadWrite, quorum: true, open: overAll(openRWHash)},
}

type opener func(driver.Driver) (locker.Locker, error)

func openSingle(d driver.Driver) (locker.Locker, error) { return single.New(d, single.Config{}) }
func openReentrant(d driver.Driver) (locker.Locker, error) {
	return reentrant.New(d, reentrant.Config{})
}
func openRWHash(d driver.Driver) (locker.Locker, error) { return rwhash.New(d, rwhash.Config{}) }

func overOne(open opener) func([]driver.Driver) (locker.Locker, error) {
	return func(drivers []driver.Driver) (locker.Locker, error) { return open(drivers[0]) }
}

func overAll(open opener) func([]driver.Driver) (locker.Locker, error) {
	return func(drivers []driver.Driver) (locker.Locker, error) {
		nodes := make([]locker.Locker, len(drivers))
		for i, d := range drivers {
			var err error
			if nodes[i], err = open(d); err != nil {
				return nil, err
			}
		}
		return redlock.New(nodes, redlock.Config{})
	}
}

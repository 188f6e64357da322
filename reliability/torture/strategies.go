package main

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// strategy is a kind of lock under test.
type strategy struct {
	workload.Strategy
	quorum bool // over several servers
	fair   bool // with a strict order of waiters; ordered picks it for groups of the same strategy
	flawed bool // tried only on request
}

var strategies = map[string]strategy{
	"single":           {Strategy: workload.Strategies["single"]},
	"reentrant":        {Strategy: workload.Strategies["reentrant"]},
	"rwhash":           {Strategy: workload.Strategies["rwhash"]},
	"semaphore":        {Strategy: workload.Strategies["semaphore"]},
	"single" + fair:    {Strategy: workload.Fair["single"], fair: true},
	"reentrant" + fair: {Strategy: workload.Fair["reentrant"], fair: true},
	"redlock-single":   {Strategy: workload.Strategies["single"], quorum: true},
	"redlock-rwhash":   {Strategy: workload.Strategies["rwhash"], quorum: true},
}

// handsOver is the strategy of cohorts.
const handsOver = "single"

// fair ends the names of strategies with a strict order of waiters.
const fair = "-fair"

// open makes the Locker over a driver for each server.
func (s strategy) open(drivers []driver.Driver) (locker.Locker, error) {
	if s.quorum {
		return s.Open.Quorum(drivers)
	}
	return s.Open(drivers[0])
}

package main

import (
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// task is a worker process's input from its parent, as one line of JSON. Times are on the common
// clock.
type task struct {
	Seed    uint64          `json:"seed"`
	Targets [][]string      `json:"targets"` // the addresses to dial, of each server or cluster
	Kind    drivertest.Kind `json:"kind"`
	Master  string          `json:"master"` // its name, if there are Sentinels
	Groups  []group         `json:"groups"`
	First   int             `json:"first"` // number of its first client
	Start   int64           `json:"start"`
	End     int64           `json:"end"`
	Part    time.Duration   `json:"part"` // how long a name is used: histories stay short
	Store   string          `json:"store"`
}

// group is a set of clients with one role. Contenders contend for one name at a time.
type group struct {
	Name     string        `json:"name"`
	Strategy string        `json:"strategy"` // a key of strategies
	Rules    history.Rules `json:"rules"`
	Role     role          `json:"role"`
	Clients  int           `json:"clients"` // in each process
	Cohort   *cohort       `json:"cohort"`  // nil: each client has a chain of its own
}

// cohort lets the clients of a group share one chain in each process, and hand locks over in it.
type cohort struct {
	HandOver time.Duration   `json:"handOver"`
	TTLs     []time.Duration `json:"ttls"` // few, because a lock is only handed over to a request with the same TTL
}

// clientsOf is how many clients all groups have in each process.
func clientsOf(groups []group) int {
	n := 0
	for _, g := range groups {
		n += g.Clients
	}
	return n
}

// leases are the clients' TTLs: short, so many run out.
var leases = []time.Duration{
	minTTL, 300 * time.Millisecond, 450 * time.Millisecond, 650 * time.Millisecond, time.Second, 1400 * time.Millisecond, maxTTL,
}

const (
	minTTL = 200 * time.Millisecond
	maxTTL = 2 * time.Second
)

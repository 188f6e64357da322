package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// longest bounds a fault's duration: longer than any lease.
const longest = maxTTL + maxTTL/4

// fault is a temporary fault. It lasts until do returns.
type fault struct {
	kind string
	// brief: it delays nothing.
	brief bool
	// loses: a server may lose its state.
	loses bool
	// at reports whether it is possible in a topology.
	at func(*deployment) bool
	do func(context.Context, *disturber) error
}

// lane is a part of the system with its faults. Within a lane they follow one another.
type lane struct {
	name   string
	faults []fault
}

var lanes = []lane{
	{"network", networkFaults},
	{"server", serverFaults},
	{"process", processFaults},
}

// disturber makes the faults of a lane in a round.
type disturber struct {
	*round
	random *rand.Rand
}

// lasting returns a random duration for a fault.
func (d *disturber) lasting() time.Duration {
	if d.trouble != nil {
		return troubleTime
	}
	if d.random.IntN(2) == 0 {
		return 10*time.Millisecond + time.Duration(d.random.Int64N(int64(minTTL)))
	}
	return 10*time.Millisecond + time.Duration(d.random.Int64N(int64(longest)))
}

// wait waits for the duration of a fault, or until the round ends.
func (d *disturber) wait(ctx context.Context) { pause(ctx, d.lasting()) }

// server picks a server with locks.
func (d *disturber) server(ctx context.Context) (*redistest.Server, error) {
	all, err := d.deployment.keepers(ctx)
	if err != nil {
		return nil, err
	}
	return all[d.random.IntN(len(all))], nil
}

func anywhere(*deployment) bool     { return true }
func proxied(s *deployment) bool    { return len(s.proxies) > 0 }
func fixed(s *deployment) bool      { return s.masters == nil }
func sentinel(s *deployment) bool   { return s.sentinel != nil }
func clustered(s *deployment) bool  { return s.cluster != nil }
func replicated(s *deployment) bool { return s.cluster != nil && s.masters != nil }
func standalone(s *deployment) bool { return s.cluster == nil && s.sentinel == nil }

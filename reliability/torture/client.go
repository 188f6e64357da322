package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/reliability/history"
	"github.com/holdfast-go/holdfast/reliability/workload"
)

// client acquires, uses and releases locks of its group, in one goroutine.
type client struct {
	*work
	group
	number int
	source workload.Source

	h      *history.Client
	l      locker.Locker
	nodes  []driver.Driver
	flawed bool // its strategy has a known flaw
	talks  bool // logs the events of its locks
	store  *storeClient
}

// providers is the number of providers. Clients use them in turn.
var providers = len(clients.All)

// open makes the client's Locker.
func (c *client) open(drivers [][]driver.Driver) error {
	s, ok := strategies[c.Strategy]
	if !ok {
		return fmt.Errorf("no strategy %q", c.Strategy)
	}
	c.nodes = make([]driver.Driver, len(drivers))
	for i, byProvider := range drivers {
		c.nodes[i] = byProvider[(c.number+i)%len(byProvider)]
	}
	var err error
	if c.l, err = s.open(c.nodes); err != nil {
		return err
	}
	c.flawed = s.flawed
	c.source.Model, c.source.TTLs = c.Rules.Model, leases
	if s.quorum && c.Role != contender && c.Role != impatient { // a quorum soon returns an unknown outcome
		c.l = locker.Chain(c.l, locker.Must(retry.New(retry.Config{})))
	}
	switch c.Role {
	case holder, talker:
		c.l = c.shared()
		c.talks = c.Role == talker
	case contender, impatient:
		if c.Cohort != nil {
			c.joinCohort()
		} else {
			if c.source.Chance(2) {
				c.l = locker.Chain(c.l, locker.Must(retry.New(retry.Config{})))
			}
			if c.source.Watched = c.source.Chance(3); c.source.Watched {
				c.l = c.watch(c.l)
			}
		}
		c.talks = c.source.Chance(3)
	}
	if c.talks {
		c.l = c.logged(c.l)
	}
	return nil
}

// shared returns the watched Locker of all bystanders with the client's strategy and provider.
func (c *client) shared() locker.Locker {
	key := fmt.Sprint(c.Strategy, c.number%providers)
	if c.bystanders[key] == nil {
		c.bystanders[key] = c.watch(c.l)
	}
	return c.bystanders[key]
}

// joinCohort lets the client use the chain of its group in this process.
func (c *client) joinCohort() {
	c.source.TTLs, c.source.Watched = c.Cohort.TTLs, c.Rules.Watched
	if c.cohorts[c.Name] == nil {
		l := c.l
		if c.source.Watched {
			l = c.watch(l)
		}
		c.cohorts[c.Name] = locker.Chain(l, locker.Must(handover.New(handover.Config{Tenure: c.Cohort.HandOver})),
			locker.Must(retry.New(retry.Config{})))
	}
	c.l = c.cohorts[c.Name]
}

func (c *client) run(ctx context.Context) (err error) {
	if c.store, err = dialStore(c.Store); err != nil {
		return err
	}
	defer c.store.conn.Close()
	ctx = locktrace.With(ctx, &locktrace.Trace{Woken: c.woken})
	if c.talks {
		ctx = locktrace.With(ctx, &locktrace.Trace{Renewed: func(ctx context.Context, info locktrace.RenewedInfo) {
			c.lines.InfoContext(ctx, "renewed", slog.String("lock", info.Name))
		}})
	}
	c.h = c.rec.Client(c.number)
	for c.rec.Now() < c.Start {
		pause(ctx, time.Duration(c.Start-c.rec.Now()))
	}
	for now := c.rec.Now(); now < c.End; now = c.rec.Now() {
		c.turn(ctx, partName(c.Name, int(time.Duration(now-c.Start)/c.Part)))
	}
	return nil
}

// turn is one iteration of the client's loop.
func (c *client) turn(ctx context.Context, name string) {
	switch c.Role {
	case holder:
		c.keep(ctx)
	case cycler:
		c.acquireAndRelease(ctx)
	case talker:
		c.talk(ctx)
	case pinger:
		c.ping(ctx)
	default:
		if c.Role == contender || c.hurry.On() {
			c.cycle(ctx, name)
		}
		pause(ctx, c.upTo(20*time.Millisecond))
	}
}

// partName returns a group's name for a part of the round.
func partName(group string, part int) string { return fmt.Sprintf("%s.%d", group, part) }

func (c *client) upTo(d time.Duration) time.Duration {
	return c.source.Between(1, d+1)
}

// cycle makes one turn of the workload, with pauses short enough to keep the name contended.
func (c *client) cycle(ctx context.Context, name string) {
	s := &c.source
	s.Names = []workload.Name{{Name: name, Fenced: !c.flawed && !s.Chance(5)}} // flawed locks have no tokens
	t := s.Turn("")
	if !c.flawed && s.Chance(3) {
		s.PassOn(&t, 1)
	}
	if !c.flawed && s.Chance(4) {
		s.MinHold(&t)
	}
	for i := range t.Steps {
		one := &t.Steps[i]
		if !s.Chance(6) {
			one.Pause = s.Between(0, 10*time.Millisecond)
		}
		one.Swap = s.Chance(2)
	}
	if c.Role == impatient {
		s.Hurry(&t)
	}
	turns := &workload.Client{
		Calls: c.h, Locker: c.l, Lockers: []locker.Locker{c.l}, Names: s.Names, Accept: c.store.accept, Passes: c.store,
		Sleep: func(d time.Duration) { pause(ctx, d) }, Until: time.Now().Add(time.Duration(c.End - c.rec.Now())),
	}
	if err := turns.Turn(ctx, t); err != nil && history.OutcomeOf(err) == history.Unsettled {
		pause(ctx, c.upTo(50*time.Millisecond)) // immediate failures must not spin
	}
}

package simulate

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/reliability/workload"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// world is servers, clients and the network between them.
type world struct {
	plan    *Plan
	servers []*server
	clients []*client
	links   [][]*link // by client, then server
	lockers []locker.Locker
}

func build(p *Plan, strategy workload.Opener) (*world, error) {
	w := &world{plan: p}
	for _, offset := range p.Offsets {
		s, err := newServer()
		if err != nil {
			return w, err
		}
		s.step(offset)
		w.servers = append(w.servers, s)
	}
	for i, provider := range p.Clients {
		c := &client{}
		w.clients = append(w.clients, c)
		w.links = append(w.links, nil)
		for j, s := range w.servers {
			l := &link{seed: p.Seed, client: i, number: j, server: s}
			w.links[i] = append(w.links[i], l)
			if err := c.connect(provider, l, i); err != nil {
				return w, fmt.Errorf("connect %s: %w", provider, err)
			}
		}
		l, err := chain(p, i, c.drivers, strategy)
		if err != nil {
			return w, err
		}
		w.lockers = append(w.lockers, l)
	}
	return w, nil
}

// chain returns the Locker of a client of the plan.
func chain(p *Plan, client int, drivers []driver.Driver, strategy workload.Opener) (l locker.Locker, err error) {
	if p.Quorum {
		l, err = strategy.Quorum(drivers)
	} else {
		l, err = strategy(drivers[0])
	}
	if err != nil {
		return nil, err
	}
	var around []locker.Middleware
	if p.HandOver > 0 && p.Retry {
		around = append(around, locker.Must(handover.New(handover.Config{Tenure: p.HandOver})))
	}
	if p.Watchdog {
		around = append(around, locker.Must(watchdog.New(watchdog.Config{})))
	}
	if p.Retry {
		around = append(around, locker.Must(retry.New(retry.Config{Policy: pausesOf(p.Seed, client)})))
	}
	l = locker.Chain(l, around...)
	if p.Several {
		l = workload.Several(l, strconv.Itoa(client))
	}
	return l, nil
}

// each calls do for the links of a fault.
func (w *world) each(f Fault, do func(*link)) {
	for i, links := range w.links {
		for j, l := range links {
			if (f.Client < 0 || f.Client == i) && (f.Server < 0 || f.Server == j) {
				do(l)
			}
		}
	}
}

// calm ends the faults that do not end by themselves.
func (w *world) calm() {
	w.each(Fault{Client: -1, Server: -1}, (*link).heal)
	for _, s := range w.servers {
		s.refuse("")
		s.start()
	}
}

// slowest returns the longest flight of a segment to a server.
func (w *world) slowest() (most time.Duration) {
	w.each(Fault{Client: -1, Server: -1}, func(l *link) {
		l.mu.Lock()
		defer l.mu.Unlock()
		most = max(most, l.slowest)
	})
	return most
}

// census lists the unexpected keys of the servers.
func (w *world) census() error {
	var errs []error
	for i, s := range w.servers {
		for _, key := range s.census() {
			errs = append(errs, fmt.Errorf("server %d has key %s", i, key))
		}
	}
	return errors.Join(errs...)
}

// close closes all clients and servers.
func (w *world) close() error {
	var errs []error
	for i, c := range w.clients {
		if err := c.close(); err != nil {
			errs = append(errs, fmt.Errorf("close client %d, %s: %w", i, w.plan.Clients[i], err))
		}
	}
	for _, s := range w.servers {
		s.m.Close()
	}
	return errors.Join(errs...)
}

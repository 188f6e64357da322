package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// client takes, uses and releases locks of its group, in one goroutine.
type client struct {
	*work
	group
	number int
	random *rand.Rand

	h       *history.Client
	l       locker.Locker
	nodes   []driver.Driver
	watched bool // by strategies/watchdog
	talks   bool // logs what happens to its locks
	store   *storeClient
}

// The owners of reentrant locks, whom clients of all processes are by turns.
const owners = 3

// providers is how many there are: clients take them by turns.
var providers = len(clients.All)

// open makes the Locker that the client uses.
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
	if s.quorum && c.Role != contender && c.Role != impatient { // a quorum answers soon that it does not know
		c.l = locker.Chain(c.l, locker.Must(retry.New(retry.Config{})))
	}
	switch c.Role {
	case holder, talker:
		c.l = c.shared()
		c.talks = c.Role == talker
	case contender, impatient:
		if c.random.IntN(2) == 0 {
			c.l = locker.Chain(c.l, locker.Must(retry.New(retry.Config{})))
		}
		if c.watched = c.random.IntN(3) == 0; c.watched {
			c.l = c.watch(c.l)
		}
		c.talks = c.random.IntN(3) == 0
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

func (c *client) run(ctx context.Context) (err error) {
	if c.store, err = dialStore(c.Store); err != nil {
		return err
	}
	defer c.store.conn.Close()
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

// turn is what a client does over and over again.
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
		if c.Role == contender || c.hurry.on() {
			c.cycle(ctx, name)
		}
		pause(ctx, c.upTo(20*time.Millisecond))
	}
}

// partName is the name that a group uses in a part of its time.
func partName(group string, part int) string { return fmt.Sprintf("%s.%d", group, part) }

func (c *client) upTo(d time.Duration) time.Duration {
	return time.Duration(c.random.Int64N(int64(d))) + 1
}

func (c *client) oneIn(n int) bool { return c.random.IntN(n) == 0 }

// ttl is a random lease, short ones as often as long ones.
func (c *client) ttl() time.Duration {
	span := math.Log(float64(maxTTL) / float64(minTTL))
	return time.Duration(float64(minTTL) * math.Exp(c.random.Float64()*span)).Truncate(time.Millisecond)
}

// cycle is one acquire and what follows.
func (c *client) cycle(ctx context.Context, name string) {
	req := locker.Request{Name: name, TTL: c.ttl(), Fenced: !c.oneIn(5), NoWait: c.oneIn(4)}
	if strategies[c.Strategy].flawed {
		req.Fenced = false // they have no tokens, and are to be found out by what else is wrong with them
	}
	switch c.Rules.Model {
	case history.Reentrant:
		req.Owner = fmt.Sprint("owner ", c.random.IntN(owners))
	case history.ReadWrite:
		if c.random.IntN(3) > 0 {
			req.Mode = locker.Shared
		}
	}
	hold := c.takeOver(ctx, name)
	if hold == nil {
		hold = c.acquire(ctx, req)
	}
	if hold == nil {
		return
	}
	c.use(ctx, hold)
	if c.Rules.Model == history.Reentrant && c.oneIn(2) {
		req.TTL = c.ttl()
		if nested := c.acquire(ctx, req); nested != nil {
			c.use(ctx, nested)
			if c.oneIn(2) {
				hold, nested = nested, hold
			}
			c.leave(ctx, nested)
			c.use(ctx, hold)
		}
	}
	c.leave(ctx, hold)
}

func (c *client) acquire(ctx context.Context, req locker.Request) *history.Hold {
	ctx, cancel := c.limited(ctx, 100*time.Millisecond+c.upTo(2*time.Second))
	defer cancel()
	if c.oneIn(10) { // given up at any instant
		time.AfterFunc(c.upTo(20*time.Millisecond), cancel)
	}
	hold, err := c.h.Acquire(ctx, c.l, req)
	if err != nil && history.OutcomeOf(err) != history.Refused {
		pause(ctx, c.upTo(50*time.Millisecond)) // what fails at once fails often
	}
	return hold
}

// use does some of what a holder does, as long as the lock is held.
func (c *client) use(ctx context.Context, h *history.Hold) {
	for range 1 + c.random.IntN(5) {
		if !h.Held() {
			return
		}
		c.passOn(h)
		switch {
		case c.oneIn(4):
			c.bounded(ctx, func(ctx context.Context) { _ = h.Renew(ctx, c.ttl()) })
		case c.Rules.Model == history.ReadWrite && c.oneIn(4):
			c.bounded(ctx, func(ctx context.Context) {
				if h.Mode() == locker.Exclusive {
					_ = h.Downgrade(ctx)
				} else {
					_ = h.Upgrade(ctx)
				}
			})
		case c.oneIn(6):
			pause(ctx, c.upTo(h.TTL()))
		default:
			pause(ctx, c.upTo(10*time.Millisecond))
		}
		c.write(h)
	}
}

func (c *client) bounded(ctx context.Context, f func(context.Context)) {
	ctx, cancel := c.limited(ctx, 20*time.Millisecond+c.upTo(2*time.Second))
	defer cancel()
	f(ctx)
}

// limited is a context for one call. A client that is impatient gives it far less time than it
// needs.
func (c *client) limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if c.Role == impatient {
		d = c.upTo(hopeless) - 1
	}
	return context.WithTimeout(ctx, d)
}

// write writes to the store, whether or not the lock is held still: the store is to find out.
func (c *client) write(h *history.Hold) {
	if h.Fence() != 0 && h.Mode() == locker.Exclusive {
		_ = h.Write(c.store.accept)
	}
}

// leave ends a hold: by a release, most often, or by letting the lease end.
func (c *client) leave(ctx context.Context, h *history.Hold) {
	if !c.watched && c.oneIn(5) {
		for h.Held() && c.rec.Now() < c.End {
			pause(ctx, min(c.upTo(100*time.Millisecond), max(time.Until(h.Deadline()), 1)))
		}
		if c.oneIn(2) { // as one who was held up
			pause(ctx, c.upTo(300*time.Millisecond))
		}
		c.write(h)
		if c.oneIn(3) {
			h.Abandon()
			return
		}
	}
	if c.Role == impatient {
		c.bounded(ctx, func(ctx context.Context) { _ = h.Release(ctx) })
		return
	}
	_ = h.Release(ctx)
}

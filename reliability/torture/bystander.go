package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/reliability/history"
)

// role is the task of a group's clients.
type role string

const (
	contender role = ""          // they contend for the group's names
	impatient role = "impatient" // the same with hopeless deadlines, during the trouble "hurry"
	holder    role = "holder"    // each keeps a watched lock on a name of its own
	cycler    role = "cycler"    // each acquires and releases a lock on a name of its own
	talker    role = "talker"    // each keeps a watched lock and logs its events; they are not recorded
	pinger    role = "pinger"    // each sends PING after PING over a connection of its own: it shows how fast the machine is
)

// The leases of bystanders: shorter and longer than a trouble.
const (
	shortLease = 4 * time.Second
	longLease  = 12 * time.Second
)

// standing is how long bystanders wait for a free lock: longer than a trouble.
const standing = 20 * time.Second

func (c *client) ownName() string { return partName(c.Name, c.number) }

// obtain acquires the lock of a client's own name.
func (c *client) obtain(ctx context.Context, ttl time.Duration) *history.Hold {
	bound, cancel := context.WithTimeout(ctx, standing)
	defer cancel()
	h, err := c.h.Acquire(bound, c.l, locker.Request{Name: c.ownName(), TTL: ttl})
	if err != nil {
		pause(ctx, c.upTo(50*time.Millisecond))
	}
	return h
}

// odd reports whether this is an odd client of its provider: every second one is.
func (c *client) odd() bool { return c.number/providers%2 == 1 }

// keep holds a lock until it is lost or the time is over.
func (c *client) keep(ctx context.Context) {
	ttl := shortLease
	if c.odd() {
		ttl = longLease
	}
	if h := c.obtain(ctx, ttl); h != nil {
		c.waitFor(ctx, h.Done())
		_ = h.Release(ctx)
	}
}

// waitFor waits until done is closed or the task's time is over.
func (c *client) waitFor(ctx context.Context, done <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.End-c.rec.Now()))
	defer cancel()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (c *client) acquireAndRelease(ctx context.Context) {
	if h := c.obtain(ctx, longLease); h != nil {
		_ = h.Release(ctx)
	}
	if strategies[c.Strategy].quorum {
		pause(ctx, quorumRest)
	}
}

// ping pings a server until the time is over.
func (c *client) ping(ctx context.Context) {
	addrs := slices.Concat(c.Targets...)
	var d net.Dialer
	tcp, err := d.DialContext(ctx, "tcp", addrs[c.number%len(addrs)])
	if err != nil {
		return
	}
	conn := resp.NewConn(tcp)
	defer conn.Close()
	for {
		e := history.Event{Name: c.ownName(), Client: c.number, Kind: history.Note, Outcome: history.OK, Call: c.rec.Now()}
		if _, err := conn.Do("PING"); err != nil || c.rec.Now() > c.End {
			return
		}
		e.ID, e.Return = fmt.Sprintf("ping/%d/%d", c.number, e.Call), c.rec.Now()
		c.rec.Add(e)
	}
}

var remove = driver.NewScript("return redis.call('DEL', KEYS[1])")

// talk holds a lock and logs its events. While the log is blocked, every second talker loses its
// lock: losses are logged too.
func (c *client) talk(ctx context.Context) {
	lock, err := c.l.Acquire(ctx, locker.Request{Name: c.ownName(), TTL: shortLease})
	if err != nil {
		pause(ctx, c.upTo(50*time.Millisecond))
		return
	}
	for removed := false; c.rec.Now() < c.End && lock.Err() == nil; pause(ctx, 50*time.Millisecond) {
		if removed || !c.log.full.On() || c.odd() {
			continue
		}
		removed = true
		for _, node := range c.nodes {
			_, _ = node.Eval(ctx, remove, []string{lock.Name()}, nil)
		}
	}
	_ = lock.Release(ctx)
}

package respdriver

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// node is where commands are sent.
type node struct {
	addr   string
	asking bool // send ASKING first
}

// addrOf returns the address of the node that has keys, as far as it is known. It is empty if the
// Sentinels know it.
func (d *Driver) addrOf(keys []string) string {
	if d.cfg.MasterName != "" {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(keys) > 0 {
		if addr, known := d.slots[redistest.Slot(keys[0])]; known {
			return addr
		}
	}
	return d.cfg.Addrs[d.next%len(d.cfg.Addrs)]
}

// redirect returns the node that a MOVED or ASK reply names, and remembers that of a MOVED.
func (d *Driver) redirect(reply resp.Error) (to node, redirected bool) {
	code, rest, _ := strings.Cut(string(reply), " ")
	slot, addr, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(slot)
	switch {
	case !d.cfg.Cluster || err != nil:
		return node{}, false
	case code == "ASK":
		return node{addr: addr, asking: true}, true
	case code == "MOVED":
		d.mu.Lock()
		defer d.mu.Unlock()
		d.slots[n] = addr
		return node{addr: addr}, true
	default:
		return node{}, false
	}
}

// forget drops what is known about a node of a cluster that did not answer: others may have taken
// over its slots.
func (d *Driver) forget(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.slots, func(_ int, to string) bool { return to == addr })
	if d.cfg.Cluster && addr == d.cfg.Addrs[d.next%len(d.cfg.Addrs)] {
		d.next++
	}
}

// masterOf returns the address of the node that has the slot of channel. It asks for the slots of
// the cluster where what it knows is older than fresh, or than five seconds.
func (d *Driver) masterOf(ctx context.Context, channel string, fresh time.Time) (string, error) {
	if now := time.Now(); d.asked.Before(fresh) || now.Sub(d.asked) > 5*time.Second {
		reply, err := d.do(ctx, nil, "CLUSTER", "SLOTS")
		if err != nil {
			return "", err
		}
		d.masters, d.asked = adapter.ParseSlots(reply), now
	}
	r, found := d.masters.Of(channel)
	if !found {
		return "", errors.New("the slot of " + channel + " has no master")
	}
	return r.Addr, nil
}

// openShard connects a feed for SSUBSCRIBE to the master at addr.
func (d *Driver) openShard(ctx context.Context, addr, _ string) (adapter.Feed, error) {
	c, err := d.dial(ctx, addr)
	return feed{c, "S"}, err
}

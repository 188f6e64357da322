package respdriver

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// addrOf returns the address of the server of key, as far as it is known.
func (d *Driver) addrOf(ctx context.Context, key string) string {
	d.mu.Lock()
	addr, stale := d.cfg.Addrs[d.next%len(d.cfg.Addrs)], d.stale
	d.mu.Unlock()
	if d.topology != nil && key != "" {
		if _, master, err := d.topology.Master(ctx, key, stale); err == nil && master != "" {
			return master
		}
	}
	return addr
}

// distrust is called when the server at addr did not answer: another may have its slots by now.
func (d *Driver) distrust(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale = time.Now()
	if addr == d.cfg.Addrs[d.next%len(d.cfg.Addrs)] {
		d.next++
	}
}

// redirect returns the node's address in a MOVED or ASK. They prove that the command was not
// executed. to is empty for another error.
func (d *Driver) redirect(err error) (to string, asking bool) {
	reply, refused := errors.AsType[*driver.ServerError](err)
	if d.topology == nil || !refused || reply.Code() != "MOVED" && reply.Code() != "ASK" {
		return "", false
	}
	return reply.Text[strings.LastIndexByte(reply.Text, ' ')+1:], reply.Code() == "ASK" // ASK 3999 127.0.0.1:6381
}

// askTimeout is how long a node has to report the slots.
const askTimeout = time.Second

// askSlots asks a node for the slots of the cluster.
func (d *Driver) askSlots(ctx context.Context) (reply any, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	addr := d.addrOf(ctx, "")
	conn, err := d.dial(ctx, addr)
	if err == nil {
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		if reply, err = do(conn, "CLUSTER", "SLOTS"); err == nil {
			return reply, nil
		}
	}
	d.distrust(addr)
	return nil, err
}

// masterOf returns the address of the master with channel's slot.
func (d *Driver) masterOf(ctx context.Context, channel string, fresh time.Time) (string, error) {
	_, addr, err := d.topology.Master(ctx, channel, fresh)
	return addr, err
}

// openShard connects a feed for SSUBSCRIBE to the master at addr.
func (d *Driver) openShard(ctx context.Context, addr, _ string) (adapter.Feed, error) {
	c, err := d.dial(ctx, addr)
	return feed{c, "S"}, err
}

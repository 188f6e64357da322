package redigo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// nodeTimeout is how long a node has to answer CLUSTER commands.
const nodeTimeout = time.Second

// shards lets a hub subscribe at the masters of a cluster. Their names are node IDs.
func (d *redigoDriver) shards(t *adapter.Topology) *adapter.Shards {
	return &adapter.Shards{
		Master: func(ctx context.Context, channel string, fresh time.Time) (string, error) {
			id, _, err := t.Master(ctx, channel, fresh)
			return id, err
		},
		Open: func(ctx context.Context, master, channel string) (adapter.Feed, error) {
			return dialFeed(ctx, true, func() (redis.Conn, error) { return d.dialMaster(master, channel) })
		},
	}
}

// askSlots asks a node of the cluster, since redisc does not export its map of the slots.
func (d *redigoDriver) askSlots(ctx context.Context) (reply any, err error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	return d.Do(ctx, "CLUSTER", "SLOTS")
}

// dialMaster dials the master of channel's slot, as redisc knows it. redisc may be behind, or take
// another node: the node's ID must be master.
func (d *redigoDriver) dialMaster(master, channel string) (redis.Conn, error) {
	dialer, ok := d.pool.(interface{ Dial() (redis.Conn, error) })
	if !ok {
		return nil, errors.ErrUnsupported
	}
	conn, err := dialer.Dial()
	if err != nil {
		return nil, err
	}
	if b, ok := conn.(binder); ok {
		err = b.Bind(channel)
	}
	var id string
	if err == nil {
		id, err = redis.String(redis.DoWithTimeout(conn, nodeTimeout, "CLUSTER", "MYID"))
	}
	if err == nil && id != master {
		err = fmt.Errorf("redigo: the pool has node %s for the slot of %q, the cluster %s", id, channel, master)
	}
	if err != nil {
		_ = conn.Close() // it was not used
		d.refresh()      // another try follows
		return nil, err
	}
	return conn, nil
}

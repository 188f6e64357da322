package redigo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// slotsTimeout bounds a question to a node about the cluster.
const slotsTimeout = time.Second

var errNoMaster = errors.New("redigo: the slot has no master")

// shards lets a hub subscribe at the masters of a cluster. Their names are node IDs. It asks the
// cluster for them, since redisc does not export what it knows.
func (d *redigoDriver) shards() adapter.Shards {
	var slots adapter.Slots
	var asked time.Time
	return adapter.Shards{
		Master: func(ctx context.Context, channel string, fresh time.Time) (string, error) {
			if slots == nil || asked.Before(fresh) {
				ctx, cancel := context.WithTimeout(ctx, slotsTimeout)
				defer cancel()
				now := time.Now()
				reply, err := d.do(ctx, "", "CLUSTER", []any{"SLOTS"})
				if err != nil {
					return "", err
				}
				slots, asked = adapter.ParseSlots(reply), now
			}
			r, found := slots.Of(channel)
			if !found {
				return "", errNoMaster
			}
			return r.ID, nil
		},
		Open: func(ctx context.Context, master, channel string) (adapter.Feed, error) {
			return dialFeed(ctx, true, func() (redis.Conn, error) { return d.dialMaster(master, channel) })
		},
	}
}

// dialMaster dials the master that has the slot of channel, as redisc knows it, which may be behind,
// or take another node that answers: the node says whether it is the one.
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
		id, err = redis.String(redis.DoWithTimeout(conn, slotsTimeout, "CLUSTER", "MYID"))
	}
	if err == nil && id != master {
		err = fmt.Errorf("redigo: the pool has node %s for the slot of %q, the cluster %s", id, channel, master)
		_ = d.cluster.Refresh() // another try follows
	}
	if err != nil {
		_ = conn.Close() // it was not used
		return nil, err
	}
	return conn, nil
}

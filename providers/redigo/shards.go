package redigo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

const (
	slotsAge     = 5 * time.Second // after which the cluster is asked again
	slotsTimeout = time.Second     // for the answer of a node
)

var errNoMaster = errors.New("redigo: the slot has no master")

// slots are the masters of a cluster, as it reported them. It is asked for them, since redisc does
// not export what it knows.
type slots struct {
	d *redigoDriver

	mu     sync.Mutex
	known  adapter.Slots
	asked  time.Time
	asking bool // in the background
}

// shards lets a hub subscribe at the masters of a cluster. Their names are node IDs.
func (d *redigoDriver) shards() adapter.Shards {
	s := &slots{d: d}
	return adapter.Shards{
		Master: s.master,
		Open: func(ctx context.Context, master, channel string) (adapter.Feed, error) {
			return dialFeed(ctx, true, func() (redis.Conn, error) { return d.dialMaster(master, channel) })
		},
	}
}

// master implements what adapter.Shards wants.
func (s *slots) master(ctx context.Context, channel string, fresh time.Time) (string, error) {
	s.mu.Lock()
	known, asked := s.known, s.asked
	if !s.asking && known != nil && time.Since(asked) > slotsAge {
		s.asking = s.d.Background(func(ctx context.Context) { _, _ = s.ask(ctx) }) // what it knows may do
	}
	s.mu.Unlock()
	if known == nil || asked.Before(fresh) {
		var err error
		if known, err = s.ask(ctx); err != nil {
			return "", err
		}
	}
	r, found := known.Of(channel)
	if !found {
		return "", errNoMaster
	}
	return r.ID, nil
}

// ask asks a node of the cluster.
func (s *slots) ask(ctx context.Context) (adapter.Slots, error) {
	ctx, cancel := context.WithTimeout(ctx, slotsTimeout)
	defer cancel()
	now := time.Now()
	reply, err := s.d.do(ctx, "", "CLUSTER", []any{"SLOTS"})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = false
	if err != nil {
		return nil, err
	}
	s.known, s.asked = adapter.ParseSlots(reply), now
	return s.known, nil
}

// dialMaster dials the master that has the slot of channel, as redisc knows it, which may be
// behind, or take another node that answers: the node says whether it is the one.
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

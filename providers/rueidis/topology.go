package rueidis

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

const (
	topologyAge     = 5 * time.Second // after which a cluster is asked again, if commands are sent
	topologyTimeout = time.Second     // for the answer of one node
)

// topology says which node serves a slot. It is immutable.
type topology struct {
	slots adapter.Slots
	nodes map[string]*node // by ID
	asked time.Time
}

// find returns the node that serves slot, or nil.
func (t *topology) find(slot uint16) *node {
	r, _ := t.slots.Find(slot)
	return t.nodes[r.ID]
}

// nodeOf returns the node that cmd is for. In a cluster that is not known yet, all commands are for
// the same.
func (d *rueidisDriver) nodeOf(cmd rueidis.Completed) *node {
	if !d.node.cluster {
		return d.node
	}
	d.learnTopology()
	if t := d.topology.Load(); t != nil {
		if n := t.find(cmd.Slot()); n != nil {
			return n
		}
	}
	return d.node
}

// learnTopology asks the cluster which node serves which slots, in the background and not too
// often.
func (d *rueidisDriver) learnTopology() {
	due := d.topologyDue.Load()
	now := time.Now()
	if now.UnixNano() < due || !d.topologyDue.CompareAndSwap(due, now.Add(topologyAge).UnixNano()) {
		return
	}
	d.Background(d.askTopology)
}

// askTopology asks one node after the other until one answers.
func (d *rueidisDriver) askTopology(ctx context.Context) {
	for _, client := range d.client.Nodes() {
		now := time.Now()
		if slots := askSlots(ctx, client); len(slots) > 0 {
			t := newTopology(d.topology.Load(), slots, d.node.asks)
			t.asked = now
			d.topology.Store(t)
			return
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// newTopology makes a topology of what a node answered. Nodes that were known before are kept.
func newTopology(before *topology, slots adapter.Slots, asks bool) *topology {
	t := &topology{slots: slots, nodes: map[string]*node{}}
	for _, r := range slots {
		if t.nodes[r.ID] != nil {
			continue
		}
		if before != nil && before.nodes[r.ID] != nil {
			t.nodes[r.ID] = before.nodes[r.ID]
		} else {
			t.nodes[r.ID] = newNode(true, asks)
		}
	}
	return t
}

// askSlots asks one node; nil if it does not answer, or nothing of use. The end of ctx does not cut
// it short, so that Close waits for it: a client that is closed while it dials keeps the
// connection.
func askSlots(ctx context.Context, client rueidis.Client) adapter.Slots {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), topologyTimeout)
	defer cancel()
	reply, err := adapter.Await(ctx, func() (any, error) {
		cmd := client.B().Arbitrary("CLUSTER", "SLOTS").Build().ToPipe()
		return client.Do(context.WithoutCancel(ctx), cmd).ToAny()
	})
	if err != nil {
		return nil
	}
	return adapter.ParseSlots(reply)
}

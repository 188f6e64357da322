package rueidis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

const (
	topologyAge     = 5 * time.Second // after which a cluster is asked again, if commands are sent
	topologyTimeout = time.Second     // for the answer of one node
)

// slots is a range of cluster slots that one node serves.
type slots struct {
	first, last uint16
	id          string // the node's
}

// topology says which node serves a slot. It is immutable.
type topology struct {
	ranges []slots // in order, without overlaps
	nodes  map[string]*node
}

// find returns the node that serves slot, or nil.
func (t *topology) find(slot uint16) *node {
	i, found := slices.BinarySearchFunc(t.ranges, slot, func(r slots, slot uint16) int {
		switch {
		case r.last < slot:
			return -1
		case r.first > slot:
			return 1
		default:
			return 0
		}
	})
	if !found {
		return nil
	}
	return t.nodes[t.ranges[i].id]
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
	d.Background(func(ctx context.Context) {
		for _, client := range d.client.Nodes() {
			if ranges := askSlots(ctx, client); len(ranges) > 0 {
				d.topology.Store(newTopology(d.topology.Load(), ranges, d.node.asks))
				return
			}
			if ctx.Err() != nil {
				return
			}
		}
	})
}

// newTopology makes a topology of what a node answered. Nodes that were known before are kept.
func newTopology(before *topology, ranges []slots, asks bool) *topology {
	t := &topology{ranges: ranges, nodes: map[string]*node{}}
	for _, r := range ranges {
		if t.nodes[r.id] != nil {
			continue
		}
		if before != nil && before.nodes[r.id] != nil {
			t.nodes[r.id] = before.nodes[r.id]
		} else {
			t.nodes[r.id] = newNode(true, asks)
		}
	}
	return t
}

// askSlots asks one node; nil if it does not answer, or nothing of use. The end of ctx does not cut
// it short, so that Close waits for it: a client that is closed while it dials keeps the
// connection.
func askSlots(ctx context.Context, client rueidis.Client) []slots {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), topologyTimeout)
	defer cancel()
	reply, err := adapter.Await(ctx, func() (any, error) {
		cmd := client.B().Arbitrary("CLUSTER", "SLOTS").Build().ToPipe()
		return client.Do(context.WithoutCancel(ctx), cmd).ToAny()
	})
	if err != nil {
		return nil
	}
	return parseSlots(reply)
}

// parseSlots reads the reply to CLUSTER SLOTS: ranges of slots, each with its master's address,
// port and id, and then its replicas'. What cannot be read is left out.
func parseSlots(reply any) (ranges []slots) {
	entries, _ := reply.([]any)
	for _, e := range entries {
		entry, _ := e.([]any)
		if len(entry) < 3 {
			continue
		}
		first, ok1 := entry[0].(int64)
		last, ok2 := entry[1].(int64)
		master, ok3 := entry[2].([]any)
		if !ok1 || !ok2 || !ok3 || first < 0 || first > last || last >= 16384 || len(master) < 2 {
			continue
		}
		id := fmt.Sprint(master[:min(len(master), 3)]...)
		ranges = append(ranges, slots{uint16(first), uint16(last), id}) //nolint:gosec // in range
	}
	slices.SortFunc(ranges, func(a, b slots) int { return cmp.Compare(a.first, b.first) })
	return ranges
}

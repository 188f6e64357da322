package rueidis

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// How many flights may be under way at one node. Those on shared connections have 896 commands at
// most. That leaves room in the client's queue of 1024 for each connection: while a queue is full,
// the client does not look at ctx.
const (
	maxSingle = 896 // on shared connections, with one command each
	maxShared = maxSingle / 32
	maxPooled = 14 // on a connection of the pool each, or in a cluster on several
	reserved  = 2  // more pooled ones, if they are urgent
)

// node is the state of one server: a master of a cluster, or the only one.
type node struct {
	d     *rueidisDriver
	start time.Time // all times below are since then

	replies         atomic.Int32 // in a row on shared connections, no more than warm
	replied, newest atomic.Int64 // see overdue
	shared          atomic.Int32 // flights on shared connections, no more than maxShared
	maxShared       int32
	// pool has an item for each connection of the client's pool in use, reserve for each further one
	// of an urgent flight.
	pool, reserve chan struct{}

	mu         sync.Mutex
	flights    map[context.Context]*flight // on shared connections, by the context of Send
	unanswered list.List                   // of *flight: those left by a caller, and a probe
	oldest     atomic.Int64                // when the first of them was sent; 0 if there is none
	probing    bool
	closing    bool // nobody waits for late replies any more
}

// newNode returns the client of one more node.
func (d *rueidisDriver) newNode() adapter.Client {
	n := &node{
		d: d, start: time.Now(), maxShared: maxShared, flights: map[context.Context]*flight{},
		pool: make(chan struct{}, maxPooled), reserve: make(chan struct{}, reserved),
	}
	if d.single {
		n.maxShared = maxSingle
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n.closing = d.closed
	d.nodes = append(d.nodes, n)
	return adapter.Client{
		Connections: int(n.maxShared) + maxPooled + reserved, Single: d.single, Waits: true,
		Send: n.send, Inline: n.isDirect, SendInline: n.sendDirect, Left: n.left,
	}
}

// now returns the time since start, never zero.
func (n *node) now() time.Duration { return n.at(time.Now()) }

// at returns a time as the time since start, never zero.
func (n *node) at(t time.Time) time.Duration { return t.Sub(n.start) + 1 }

// route returns the present route for commands.
func (n *node) route(ctx context.Context) route {
	now := time.Now()
	c := condition{urgent: driver.Urgent(ctx), warm: n.replies.Load() >= warm && n.d.stand()}
	if deadline, ok := ctx.Deadline(); ok {
		c.hurried = deadline.Sub(now) < hurry
	}
	if oldest := n.oldest.Load(); oldest != 0 {
		c.overdue = overdue(n.at(now), time.Duration(oldest), time.Duration(n.replied.Load()),
			time.Duration(n.newest.Load()))
	}
	return choose(c)
}

// observe records whether commands sent at sent on a shared connection got a reply.
func (n *node) observe(sent time.Duration, reply bool) {
	if !reply {
		n.replies.Store(0)
		return
	}
	if n.replies.Load() < warm {
		n.replies.Add(1)
	}
	n.replied.Store(int64(n.now()))
	if newest := n.newest.Load(); int64(sent) > newest {
		n.newest.CompareAndSwap(newest, int64(sent)) // if another was faster, its time does as well
	}
}

// flight is a round trip on a shared connection, or a probe.
type flight struct {
	node    *node
	sending context.Context //nolint:containedctx // of Send; ends if all callers have left; nil: a probe
	sent    time.Duration
	over    chan struct{} // ends its context
	ended   bool          // over is closed, or there are replies
	place   *list.Element // in node.unanswered, once a caller has left
}

// begin adds f, sent under the context sending.
func (n *node) begin(sending context.Context, f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f.sending, n.flights[sending] = sending, f
}

// left implements adapter.Client.
func (n *node) left(sending context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.flights[sending]
	if f == nil {
		return
	}
	if f.place == nil {
		f.place = n.unanswered.PushBack(f)
		n.age()
		n.replies.Store(0)
	}
	if n.closing {
		f.endUnwanted()
	}
}

// endUnwanted ends f, unless a caller waits for its replies. The node's mutex is held.
func (f *flight) endUnwanted() {
	if !f.ended && (f.sending == nil || f.sending.Err() != nil) {
		f.ended = true
		close(f.over)
	}
}

// landed removes f, sent under the context sending: it has replies or never will.
func (n *node) landed(sending context.Context, f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.flights, sending)
	n.forget(f)
}

// forget removes f from the unanswered flights. The mutex is held.
func (n *node) forget(f *flight) {
	f.ended = true
	if f.place != nil {
		n.unanswered.Remove(f.place)
		n.age()
	}
}

// close ends flights without callers: at once, and later each when its last caller leaves.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true
	for e := n.unanswered.Front(); e != nil; e = e.Next() {
		e.Value.(*flight).endUnwanted() //nolint:errcheck // nothing else is in it
	}
}

// age notes when the oldest unanswered flight was sent. The mutex is held.
func (n *node) age() {
	oldest := time.Duration(0)
	if first := n.unanswered.Front(); first != nil {
		oldest = first.Value.(*flight).sent //nolint:errcheck // nothing else is in it
	}
	n.oldest.Store(int64(oldest))
}

// beginProbe returns the flight of a probe. It stands for a direct command sent at sent without a
// reply. nil: a probe is under way.
func (n *node) beginProbe(sent time.Duration) *flight {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probing {
		return nil
	}
	n.probing = true
	f := &flight{node: n, sent: sent, over: make(chan struct{})}
	f.place = n.unanswered.PushFront(f)
	n.age()
	return f
}

func (n *node) endProbe(f *flight) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(f)
	n.probing = false
}

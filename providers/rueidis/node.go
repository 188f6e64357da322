package rueidis

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// How many commands may be under way at one node. Direct and detached ones and a probe together
// leave room in the client's queue of 1024 commands per shared connection: while that is full, the
// client does not look at ctx.
const (
	maxDirect   = 256
	maxDetached = 640
	maxPooled   = 16
	maxAcked    = 64
)

// node is what the driver knows of one server: a master of a cluster, or the only one.
type node struct {
	cluster bool
	asks    bool      // the client asks for a context's Err before it sends
	start   time.Time // all times below are since then

	direct   atomic.Int32     // direct commands under way
	expiries adapter.Expiries // of them
	shared   *adapter.Gate    // of detached commands
	pool     *adapter.Gate    // of pooled commands
	acked    *adapter.Gate    // of scripts with a WAIT behind them

	replies         atomic.Int32 // in a row on shared connections, no more than warm
	replied, newest atomic.Int64 // see overdue

	mu         sync.Mutex
	unanswered list.List    // of *call: detached calls whose callers have left, and a probe
	leftPooled list.List    // of *call: pooled calls whose callers have left
	oldest     atomic.Int64 // when the first of them was sent; 0 if there is none
	probing    bool
	closing    bool // nobody waits for late replies any more
}

func newNode(cluster, asks bool) *node {
	return &node{
		cluster: cluster, asks: asks, start: time.Now(),
		shared: adapter.NewGate(maxDetached), pool: adapter.NewGate(maxPooled), acked: adapter.NewGate(maxAcked),
	}
}

// now returns the time since start, never zero.
func (n *node) now() time.Duration { return n.at(time.Now()) }

// at returns a time as the time since start, never zero.
func (n *node) at(t time.Time) time.Duration { return t.Sub(n.start) + 1 }

// route returns the route for a command that is sent now.
func (n *node) route(ctx context.Context, now time.Time) route {
	c := condition{
		urgent: driver.Urgent(ctx), cluster: n.cluster,
		warm: n.replies.Load() >= warm, crowded: n.direct.Load() >= maxDirect,
	}
	if deadline, ok := ctx.Deadline(); ok {
		c.hurried = deadline.Sub(now) < hurry
	}
	if oldest := n.oldest.Load(); oldest != 0 {
		c.overdue = overdue(n.at(now), time.Duration(oldest), time.Duration(n.replied.Load()),
			time.Duration(n.newest.Load()))
	}
	return choose(c)
}

// crowd is how many direct commands under way are many.
const crowd = 16

// gates returns those of a route that is not direct, for detach.
func (n *node) gates(r route) []*adapter.Gate {
	switch r {
	case pooled:
		return []*adapter.Gate{n.pool}
	case spare:
		return []*adapter.Gate{n.pool, n.shared}
	default:
		return []*adapter.Gate{n.shared}
	}
}

// observe notes whether a command sent at sent on a shared connection got a reply.
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
		n.newest.CompareAndSwap(newest, int64(sent)) // where another is faster, its time does as well
	}
}

// call is what runs in a goroutine of its own: one command, or several sent together.
type call struct {
	sent    time.Duration // once it has begun
	gate    *adapter.Gate // that it has entered then
	maySend bool          // the client has been allowed to send
	ended   bool
	left    bool          // by its caller
	over    chan struct{} // ends its context
	givenUp bool          // over is closed
	expiry  *time.Timer   // closes over; of a pooled call whose caller has left
	place   *list.Element // in node.unanswered or node.leftPooled
}

// giveUp ends c's context. The node's mutex is held.
func (c *call) giveUp() {
	if !c.givenUp {
		c.givenUp = true
		close(c.over)
	}
}

// begin reports whether c, which has entered gate, may send: its caller has not left.
func (n *node) begin(c *call, gate *adapter.Gate) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.left {
		return false
	}
	c.gate, c.sent = gate, n.now()
	c.maySend = gate != n.shared || !n.asks // else see lasting
	return true
}

// allow reports whether the client may send c's command: its caller has not left.
func (n *node) allow(c *call) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !c.left {
		c.maySend = true
	}
	return c.maySend
}

// sendable reports whether c's command may have been sent.
func (n *node) sendable(c *call) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.maySend
}

func (n *node) end(c *call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.ended = true
	if c.expiry != nil {
		c.expiry.Stop()
	}
	if c.place != nil {
		n.leftPooled.Remove(c.place) // from the one that it is in
		n.unanswered.Remove(c.place)
		n.age()
	}
}

// leave notes that c's caller has left, and reports whether its command may have been sent. If not,
// it never will be. A call that waits for a connection of the client's pool, or for a reply on one,
// is given up after lag; it may wait forever otherwise, if the pool is used up.
func (n *node) leave(c *call) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.left = true
	if c.ended {
		return c.maySend
	}
	switch c.gate {
	case n.shared:
		c.place = n.unanswered.PushBack(c)
		n.age()
		n.replies.Store(0)
	case n.pool:
		c.place = n.leftPooled.PushBack(c)
		c.expiry = time.AfterFunc(lag, func() { n.expire(c) })
	default:
		return c.maySend
	}
	if n.closing {
		c.giveUp()
	}
	return c.maySend
}

func (n *node) expire(c *call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.giveUp()
}

// close ends the calls whose callers have left, and from now on each whose caller leaves.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closing = true
	n.expiries.Close()
	for _, calls := range []*list.List{&n.unanswered, &n.leftPooled} {
		for e := calls.Front(); e != nil; e = e.Next() {
			e.Value.(*call).giveUp() //nolint:errcheck // nothing else is in it
		}
	}
}

// age notes when the oldest unanswered call was sent. The mutex is held.
func (n *node) age() {
	oldest := time.Duration(0)
	if first := n.unanswered.Front(); first != nil {
		oldest = first.Value.(*call).sent //nolint:errcheck // nothing else is in it
	}
	n.oldest.Store(int64(oldest))
}

// beginProbe returns the call of a probe, which stands for a direct command that was sent at sent
// and got no reply; nil if a probe is under way.
func (n *node) beginProbe(sent time.Duration) *call {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.probing {
		return nil
	}
	n.probing = true
	c := &call{sent: sent, over: make(chan struct{})}
	c.place = n.unanswered.PushFront(c)
	n.age()
	return c
}

func (n *node) endProbe(c *call) {
	n.end(c)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.probing = false
}

// detach calls do in a goroutine of its own, once a gate has let it in, and returns soon after ctx
// ends, while do is finished behind. After that do is not called: then the error matches
// [driver.ErrNotSent]. It waits for the last of gates, if no other lets it in at once.
func detach[T any](
	ctx context.Context, n *node, gates []*adapter.Gate, do func(c *call) (T, error),
) (T, error) {
	c := &call{over: make(chan struct{})}
	v, err := adapter.Await(ctx, func() (v T, err error) {
		gate := gates[len(gates)-1]
		if i := slices.IndexFunc(gates, func(g *adapter.Gate) bool { return g != gate && g.TryEnter(ctx) }); i >= 0 {
			gate = gates[i]
		} else if err = gate.Enter(ctx); err != nil {
			return v, err
		}
		defer gate.Leave()
		if !n.begin(c, gate) {
			return v, driver.NotSent(ctx.Err())
		}
		defer n.end(c)
		if v, err = do(c); err != nil && !n.sendable(c) {
			err = driver.NotSent(err)
		}
		return v, err
	})
	if err != nil && !n.leave(c) {
		err = driver.NotSent(cmp.Or(ctx.Err(), err))
	}
	return v, err
}

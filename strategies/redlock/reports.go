package redlock

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/locker"
)

// report is what a Trace is told when a node begins to fail.
type report struct {
	ctx   context.Context //nolint:containedctx // what the callback gets
	trace *locker.Trace
	info  locker.NodeInfo
}

// nodeReport is what is known and what was reported of one node.
type nodeReport struct {
	failing   *report         // the first traced call since the node fails; nil: it works, or no call was traced
	recovered locker.NodeInfo // the node's last recovery
	told      *report         // the failure that was reported, and whose end was not
}

// next returns the callback that is due, or nil, and what it is called with. The Trace that is told
// of a failure is also told of its end: what it shows must not stay behind.
func (n *nodeReport) next() (f func(context.Context, locker.NodeInfo), ctx context.Context, info locker.NodeInfo) {
	switch told := n.told; {
	case told == nil && n.failing != nil:
		n.told = n.failing
		return n.told.trace.NodeFailing, n.told.ctx, n.told.info
	case told != nil && n.failing == nil:
		n.told = nil
		return told.trace.NodeRecovered, told.ctx, n.recovered
	}
	return nil, nil, locker.NodeInfo{}
}

// reports calls the callbacks of nodes in order, in a goroutine of its own: one that blocks delays
// no lock. What has changed and changed back meanwhile is not reported.
type reports struct {
	mu      sync.Mutex
	nodes   map[int]*nodeReport
	changed []int // the nodes that changed, in order
	running bool
}

// failing reports that a node fails, unless that was reported.
func (q *reports) failing(r report) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.node(r.info.Node); n.failing == nil {
		n.failing = &r
		q.wake(r.info.Node)
	}
}

// recovered reports that a node works again, if its failure was reported.
func (q *reports) recovered(info locker.NodeInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.node(info.Node); n.failing != nil {
		n.failing, n.recovered = nil, info
		q.wake(info.Node)
	}
}

// node returns the state of a node. The mutex is held.
func (q *reports) node(i int) *nodeReport {
	if q.nodes == nil {
		q.nodes = map[int]*nodeReport{}
	}
	if q.nodes[i] == nil {
		q.nodes[i] = &nodeReport{}
	}
	return q.nodes[i]
}

// wake has a node's change reported. The mutex is held.
func (q *reports) wake(i int) {
	if !slices.Contains(q.changed, i) {
		q.changed = append(q.changed, i)
	}
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *reports) run() {
	for {
		q.mu.Lock()
		if len(q.changed) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		f, ctx, info := q.nodes[q.changed[0]].next()
		q.changed = q.changed[1:]
		q.mu.Unlock()
		if f != nil {
			f(ctx, info)
		}
	}
}

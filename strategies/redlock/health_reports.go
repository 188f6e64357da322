package redlock

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// failureReport is what a Trace is called with when a node begins to fail.
type failureReport struct {
	ctx   context.Context //nolint:containedctx // what the callback gets
	trace *locktrace.Trace
	info  locktrace.NodeInfo
}

// nodeReport is what is known about one node, and what was reported.
type nodeReport struct {
	failing   *failureReport     // the first traced call since the node fails; nil: it works, or no call was traced
	recovered locktrace.NodeInfo // the node's last recovery
	reported  *failureReport     // the failure that was reported, and whose end was not
}

// next returns the callback that is due, or nil, and its arguments. The Trace that was told of a
// failure is also told of its end, so that a gauge does not stay up.
func (n *nodeReport) next() (f func(context.Context, locktrace.NodeInfo), ctx context.Context, info locktrace.NodeInfo) {
	switch reported := n.reported; {
	case reported == nil && n.failing != nil:
		n.reported = n.failing
		return n.reported.trace.NodeFailing, n.reported.ctx, n.reported.info
	case reported != nil && n.failing == nil:
		n.reported = nil
		return reported.trace.NodeRecovered, reported.ctx, n.recovered
	}
	return nil, nil, locktrace.NodeInfo{}
}

// healthReports calls the callbacks of all nodes in order, in a goroutine of its own: a callback
// that blocks delays no lock. What has changed and changed back meanwhile is not reported.
type healthReports struct {
	mu      sync.Mutex
	nodes   map[int]*nodeReport
	changed []int // the nodes that changed, in order
	running bool
}

// failing reports that a node fails, unless that was reported.
func (q *healthReports) failing(r failureReport) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.node(r.info.Node); n.failing == nil {
		n.failing = &r
		q.wake(r.info.Node)
	}
}

// recovered reports that a node works again, if its failure was reported.
func (q *healthReports) recovered(info locktrace.NodeInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.node(info.Node); n.failing != nil {
		n.failing, n.recovered = nil, info
		q.wake(info.Node)
	}
}

// node returns what is known about a node. The mutex is held.
func (q *healthReports) node(i int) *nodeReport {
	if q.nodes == nil {
		q.nodes = map[int]*nodeReport{}
	}
	if q.nodes[i] == nil {
		q.nodes[i] = &nodeReport{}
	}
	return q.nodes[i]
}

// wake has a node's change reported. The mutex is held.
func (q *healthReports) wake(i int) {
	if !slices.Contains(q.changed, i) {
		q.changed = append(q.changed, i)
	}
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *healthReports) run() {
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

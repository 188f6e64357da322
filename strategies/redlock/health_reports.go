package redlock

import (
	"context"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// healthReport is a node's failure or recovery, for a Trace.
type healthReport struct {
	ctx   context.Context //nolint:containedctx // for the callback
	trace *locktrace.Trace
	info  locktrace.NodeInfo
	ends  *healthReport // the failure before this recovery; nil: it is a failure
}

// healthReports calls the callbacks of all nodes in order, in a goroutine of its own: a blocking
// callback delays no lock. Changes undone meanwhile are not reported.
type healthReports struct {
	mu      sync.Mutex
	waiting []*healthReport
	running bool
}

// failing reports a node's failure r. It returns the failure for the node's recovery to end: r, or
// an earlier one whose recovery was not reported.
func (q *healthReports) failing(r *healthReport) *healthReport {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, w := range q.waiting {
		if w.ends != nil && w.info.Node == r.info.Node {
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return w.ends
		}
	}
	q.add(r)
	return r
}

// recovered reports a node's recovery to the Trace of failure, if the failure was reported.
func (q *healthReports) recovered(failure *healthReport, info locktrace.NodeInfo) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, failure); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	q.add(&healthReport{ctx: failure.ctx, trace: failure.trace, info: info, ends: failure})
}

// add adds a report. The mutex is held.
func (q *healthReports) add(r *healthReport) {
	q.waiting = append(q.waiting, r)
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *healthReports) run() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.running = false
			q.mu.Unlock()
			return
		}
		r := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		report := r.trace.NodeFailing
		if r.ends != nil {
			report = r.trace.NodeRecovered
		}
		if report != nil {
			report(r.ctx, r.info)
		}
	}
}

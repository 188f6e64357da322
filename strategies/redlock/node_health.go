package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// nodeHealth is a node's health, by the outcomes of its calls.
type nodeHealth struct {
	good    time.Time // when a call last succeeded or was refused; zero: none was
	cause   error     // why the node fails; nil: it works, as far as is known
	failing time.Time // since when it fails

	source locktrace.Source // at the failure, and reported with the recovery
}

// after returns the health after a call that ended at now with err. A node that fails only some of
// its calls works: it fails once no call has succeeded for patience.
func (h nodeHealth) after(now time.Time, err error, patience time.Duration) nodeHealth {
	switch {
	case err == nil, errors.Is(err, locker.ErrNotAcquired), errors.Is(err, locker.ErrNotHeld):
		return nodeHealth{good: now}
	case errors.Is(err, context.Canceled), errors.Is(err, errors.ErrUnsupported), errors.Is(err, locker.ErrInvalid):
		// the outcome does not depend on the node
	case h.cause != nil:
		h.cause = unwrapOp(err)
	case now.Sub(h.good) > patience:
		h.cause, h.failing = unwrapOp(err), now
	}
	return h
}

// quorumHealth is shared by the nodes of a quorum.
type quorumHealth struct {
	size    int
	failing atomic.Int64 // nodes
	reports healthReports
}

// beginCall records the begin of a call to the node.
func (n *quorumNode) beginCall(ctx context.Context, patience time.Duration) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failIfSilent(ctx, now, patience)
	n.reportFailure(ctx)
	if n.silentSince.IsZero() {
		n.silentSince = now
	}
	n.calls++
}

// endCall records the call's outcome. It is deferred, and turns a panic into an error.
func (n *quorumNode) endCall(ctx context.Context, err *error, patience time.Duration) { //nolint:gocritic // it sets it
	if v := recover(); v != nil {
		*err = panicked(v)
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.calls--; n.calls == 0 || answered(*err) {
		n.silentSince = time.Time{}
	}
	n.setHealth(ctx, n.health.after(now, *err, patience))
}

// silence returns for how long the node has answered nothing. While nobody asks it, it is not
// silent. The mutex is held.
func (n *quorumNode) silence(now time.Time) time.Duration {
	if n.calls == 0 || n.silentSince.IsZero() {
		return 0
	}
	return now.Sub(n.silentSince)
}

// checkSilence marks the node as failing if calls are in flight and it has answered none for
// patience.
func (n *quorumNode) checkSilence(ctx context.Context, patience time.Duration) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failIfSilent(ctx, now, patience)
}

// failIfSilent is checkSilence with the mutex held.
func (n *quorumNode) failIfSilent(ctx context.Context, now time.Time, patience time.Duration) {
	if silence := n.silence(now); n.calls > 0 && silence >= patience && n.health.cause == nil {
		n.setHealth(ctx, nodeHealth{good: n.health.good, cause: &unansweredError{silence}, failing: now})
	}
}

// setHealth records the node's health, and reports a change. The mutex is held.
func (n *quorumNode) setHealth(ctx context.Context, to nodeHealth) {
	before := n.health
	n.health = to
	switch {
	case before.cause == nil && to.cause != nil:
		n.health.source = n.where()
		n.quorum.failing.Add(1)
		n.reportFailure(ctx)
	case before.cause != nil && to.cause == nil:
		failing := int(n.quorum.failing.Add(-1))
		if n.reported != nil {
			info := n.info(before)
			info.Failing, info.For = failing, time.Since(before.failing)
			n.quorum.reports.recovered(n.reported, info)
			n.reported = nil
		}
	}
}

// reportFailure reports a failing node to the Trace in ctx, unless it was reported already. The
// mutex is held.
func (n *quorumNode) reportFailure(ctx context.Context) {
	if n.health.cause == nil || n.reported != nil {
		return
	}
	if t := locktrace.From(ctx); t != nil && (t.NodeFailing != nil || t.NodeRecovered != nil) {
		info := n.info(n.health)
		info.Failing = int(n.quorum.failing.Load())
		n.reported = n.quorum.reports.failing(&healthReport{ctx: context.WithoutCancel(ctx), trace: t, info: info})
	}
}

// info describes the node while it fails as h says.
func (n *quorumNode) info(h nodeHealth) locktrace.NodeInfo {
	source := locktrace.Source{Strategy: "redlock", Client: h.source.Client, Address: h.source.Address}
	return locktrace.NodeInfo{Source: source, Node: n.index, Name: n.name, Nodes: n.quorum.size, Err: h.cause}
}

// failure returns why the node fails, or nil.
func (n *quorumNode) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health.cause
}

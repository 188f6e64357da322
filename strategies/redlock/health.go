package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// health is what the outcomes of a node's calls say of it.
type health struct {
	good    time.Time // when a call last succeeded or was refused; zero: none was
	cause   error     // why the node fails; nil: it works, as far as is known
	failing time.Time // since when

	source locker.Source // when it began to fail: its recovery is reported under the same
}

// evidence is what an outcome says of the node.
type evidence uint8

const (
	nothing evidence = iota // it does not depend on the node
	works
	fails
)

func evidenceOf(err error) evidence {
	switch {
	case err == nil, errors.Is(err, locker.ErrNotAcquired), errors.Is(err, locker.ErrNotHeld):
		return works
	case errors.Is(err, context.Canceled), errors.Is(err, errors.ErrUnsupported), errors.Is(err, locker.ErrInvalid):
		return nothing
	}
	return fails
}

// after returns the health after a call that ended at now with err. A node that fails some calls,
// and not others, works: it is said to fail once no call has succeeded for patience.
func (h health) after(now time.Time, err error, patience time.Duration) health {
	switch evidenceOf(err) {
	case works:
		return health{good: now}
	case fails:
		err = unwrapOp(err)
		if h.cause != nil {
			h.cause = err
		} else if now.Sub(h.good) > patience {
			h.cause, h.failing = err, now
		}
	case nothing:
	}
	return h
}

// quorumHealth is what the nodes of a quorum share.
type quorumHealth struct {
	size    int
	failing atomic.Int64 // nodes
	reports reports
}

// called records that a call of the node begins which is no acquire.
func (n *node) called(ctx context.Context, patience time.Duration) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opened(ctx, now, patience)
}

// returned records its outcome. It is deferred, and makes an error of a panic.
func (n *node) returned(ctx context.Context, err *error, patience time.Duration) { //nolint:gocritic // it sets it
	if v := recover(); v != nil {
		*err = panicked(v)
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed(ctx, now, *err, patience)
}

// opened records that a call begins. The mutex is held.
func (n *node) opened(ctx context.Context, now time.Time, patience time.Duration) {
	n.checkOpen(ctx, now, patience)
	n.report(ctx)
	if n.open == 0 {
		n.openSince = now
	}
	n.open++
}

// closed records the outcome of a call. The mutex is held.
func (n *node) closed(ctx context.Context, now time.Time, err error, patience time.Duration) {
	n.open--
	if n.change(ctx, n.health.after(now, err, patience)); n.health.good.Equal(now) {
		n.openSince = now
	}
}

// checkSilence takes a node that has answered no call for patience, though some are under way, for
// one that fails.
func (n *node) checkSilence(ctx context.Context, patience time.Duration) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.checkOpen(ctx, now, patience)
}

// checkOpen is checkSilence, with the mutex held.
func (n *node) checkOpen(ctx context.Context, now time.Time, patience time.Duration) {
	if silence := now.Sub(n.openSince); n.open > 0 && silence >= patience && n.health.cause == nil {
		n.change(ctx, health{good: n.health.good, cause: &unansweredError{silence}, failing: now})
	}
}

// change records the node's health, and reports where that has changed. The mutex is held.
func (n *node) change(ctx context.Context, to health) {
	before := n.health
	n.health = to
	switch {
	case before.cause == nil && to.cause != nil:
		n.health.source = n.where()
		n.quorum.failing.Add(1)
		n.report(ctx)
	case before.cause != nil && to.cause == nil:
		info := n.info(before)
		info.Failing, info.For = int(n.quorum.failing.Add(-1)), time.Since(before.failing)
		n.quorum.reports.recovered(info)
	}
}

// report reports that the node fails to ctx's Trace, if it does and no Trace has been told so far.
// The mutex is held.
func (n *node) report(ctx context.Context) {
	if n.health.cause == nil {
		return
	}
	if t := locker.TraceFrom(ctx); t != nil && (t.NodeFailing != nil || t.NodeRecovered != nil) {
		info := n.info(n.health)
		info.Failing = int(n.quorum.failing.Load())
		n.quorum.reports.failing(report{context.WithoutCancel(ctx), t, info})
	}
}

// info describes the node while it fails as h says.
func (n *node) info(h health) locker.NodeInfo {
	source := locker.Source{Strategy: "redlock", Client: h.source.Client, Address: h.source.Address}
	return locker.NodeInfo{Source: source, Node: n.index, Name: n.name, Nodes: n.quorum.size, Err: h.cause}
}

// fails returns why the node fails, or nil.
func (n *node) fails() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.health.cause
}

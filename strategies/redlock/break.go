package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// FindHolds is for [locker.Break]. If a quorum of the nodes agrees on a holder, as for Inspect,
// it finds the holds of every node that answers. The returned function ends them all at once. It
// returns a [*QuorumError] if a quorum of the nodes fails, and ErrNotHeld if no node ended a hold.
// A renewal between two of these ends may restore the quorum: see docs/contracts.md.
func (l *Locker) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	if _, _, err := l.check(ctx, locker.Request{Name: name}); err != nil {
		return locker.State{}, nil, err
	}
	found := l.findNodeHolds(ctx, name)
	state, err := l.agreed(ctx, name, found)
	if err != nil || !state.Held {
		return locker.State{}, nil, err
	}
	return state, func(ctx context.Context) error { return l.endNodeHolds(ctx, name, found) }, nil
}

// nodeHolds are a node's holds of a name. end is nil if there are none, or the node failed.
type nodeHolds struct {
	nodeState
	end func(context.Context) error
}

// findNodeHolds asks all nodes, and waits for each until AttemptTimeout.
func (l *Locker) findNodeHolds(ctx context.Context, name string) []nodeHolds {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer cancel()
	found := make([]nodeHolds, len(l.nodes))
	l.eachNode(func(i int, n *quorumNode) { found[i] = n.findHolds(ctx, name) })
	return found
}

// eachNode calls do for all nodes at once, and returns when all calls have returned.
func (l *Locker) eachNode(do func(i int, n *quorumNode)) {
	var all sync.WaitGroup
	for i, n := range l.nodes {
		all.Go(func() { do(i, n) })
	}
	all.Wait()
}

// breaker is a strategy for [locker.Break].
type breaker interface {
	FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error)
}

func (n *quorumNode) findHolds(ctx context.Context, name string) (found nodeHolds) {
	found.node = n.index
	defer func() {
		if v := recover(); v != nil {
			found.err = panicked(v)
		}
	}()
	breaker, ok := lease.Find[breaker](n.inner)
	if !ok {
		found.err = fmt.Errorf("its Locker has no FindHolds: %w", errors.ErrUnsupported)
		return found
	}
	found.state, found.end, found.err = breaker.FindHolds(ctx, name)
	return found
}

// agreed returns the state agreed on by a quorum of the nodes.
func (l *Locker) agreed(ctx context.Context, name string, found []nodeHolds) (locker.State, error) {
	answers := l.answersFor(name)
	var states []locker.State
	for i, f := range found {
		answers.add(l.nodes[i], f.err, false)
		if f.err == nil {
			states = append(states, f.state)
		}
	}
	return l.verdict(ctx, states, answers)
}

// endNodeHolds ends the holds found.
func (l *Locker) endNodeHolds(ctx context.Context, name string, found []nodeHolds) error {
	errs := make([]error, len(found))
	l.eachNode(func(i int, _ *quorumNode) { errs[i] = found[i].endAll(ctx) })
	answers := l.answersFor(name)
	for i, err := range errs {
		answers.add(l.nodes[i], err, errors.Is(err, locker.ErrNotHeld))
	}
	switch {
	case len(answers.failed) >= l.quorum:
		return answers.quorumError()
	case answers.done == 0:
		return locker.ErrNotHeld
	}
	return nil
}

// endAll ends the holds of a node. It returns ErrNotHeld if there are none.
func (f nodeHolds) endAll(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		}
	}()
	switch {
	case f.err != nil:
		return f.err
	case f.end == nil:
		return locker.ErrNotHeld
	}
	return f.end(ctx)
}

package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Inspect implements locker.Inspector: the name is held if a quorum of the nodes agrees on the
// holder. Nodes naming different shared holds agree on Shared; Owner and Note are empty then.
// Holds, Left, Fence and Waiters are the highest values that a quorum reaches. Errors: a
// [*QuorumError] if failed nodes might change the result; it matches errors.ErrUnsupported if too
// many nodes are no Inspectors.
func (l *Locker) Inspect(ctx context.Context, name string) (locker.State, error) {
	state, err := l.inspect(ctx, name)
	if err != nil {
		return locker.State{}, &locker.OpError{Op: "inspect", Name: name, Err: err}
	}
	return state, nil
}

func (l *Locker) inspect(ctx context.Context, name string) (locker.State, error) {
	if _, _, err := l.check(ctx, locker.Request{Name: name}); err != nil {
		return locker.State{}, err
	}
	states, answers := l.inspectNodes(ctx, name)
	return l.verdict(ctx, states, answers)
}

// verdict returns the state agreed on by a quorum, or the zero State if nobody can have one.
func (l *Locker) verdict(ctx context.Context, states []locker.State, answers *nodeAnswers) (locker.State, error) {
	state, most, agreed := agree(states, l.quorum)
	// if they disagree, nobody has a quorum, whatever the others would say
	if agreed || most+len(answers.failed) < l.quorum {
		return state, nil
	}
	missed := answers.quorumError()
	if err := lease.ContextErr(ctx); err != nil {
		return locker.State{}, fmt.Errorf("%w: %w", err, missed)
	}
	return locker.State{}, missed
}

// inspectNodes asks all nodes until a quorum agrees, all have answered, ctx ends, or
// AttemptTimeout.
func (l *Locker) inspectNodes(ctx context.Context, name string) (states []locker.State, answers *nodeAnswers) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer cancel()
	replies := make(chan nodeState, len(l.nodes))
	for _, n := range l.nodes {
		go func() { replies <- n.inspect(ctx, name) }()
	}
	errs := slices.Repeat([]error{errUnanswered}, len(l.nodes))
	for agreed, left := false, len(l.nodes); left > 0 && !agreed; left-- {
		select {
		case r := <-replies:
			if errs[r.node] = r.err; r.err == nil {
				states = append(states, r.state)
				_, _, agreed = agree(states, l.quorum)
			}
		case <-ctx.Done():
			left = 0
		}
	}
	answers = l.answersFor(name)
	for i, err := range errs {
		answers.add(l.nodes[i], err, false)
	}
	return states, answers
}

// nodeState is a node's answer about a name.
type nodeState struct {
	node  int
	state locker.State
	err   error
}

// inspect asks the node.
func (n *quorumNode) inspect(ctx context.Context, name string) (s nodeState) {
	s.node = n.index
	defer func() {
		if v := recover(); v != nil {
			s.err = panicked(v)
		}
	}()
	inspector, ok := lease.Find[locker.Inspector](n.inner)
	if !ok {
		s.err = fmt.Errorf("its Locker is no Inspector: %w", errors.ErrUnsupported)
		return s
	}
	s.state, s.err = inspector.Inspect(ctx, name)
	return s
}

// agree returns the state common to a quorum of states. most is the largest number of states with
// one holder, or with readers.
func agree(states []locker.State, quorum int) (state locker.State, most int, agreed bool) {
	free := 0
	var readers []locker.State
	named := map[string][]locker.State{} // by owner: a restored hold may lack the note
	for _, s := range states {
		if !s.Held {
			free++
			continue
		}
		named[s.Owner] = append(named[s.Owner], s)
		if s.Mode == locker.Shared {
			s.Owner, s.Note = "", ""
			readers = append(readers, s)
		}
	}
	most = len(readers)
	for _, holders := range named {
		if len(holders) >= quorum {
			return least(holders, quorum), len(holders), true
		}
		most = max(most, len(holders))
	}
	if len(readers) >= quorum {
		return least(readers, quorum), most, true
	}
	return locker.State{}, most, free >= quorum
}

// least returns the first of states, with the highest Holds, Left, Fence and Waiters that a quorum
// of them reaches. It is Exclusive, or has a note, only if a quorum agrees.
func least(states []locker.State, quorum int) locker.State {
	s := states[0]
	var exclusive, noted int
	holds, left, fences := make([]int, len(states)), make([]time.Duration, len(states)), make([]int64, len(states))
	waiters := make([]int, len(states))
	for i, other := range states {
		holds[i], left[i], fences[i], waiters[i] = other.Holds, other.Left, other.Fence, other.Waiters
		if other.Mode == locker.Exclusive {
			exclusive++
		}
		if other.Note == s.Note {
			noted++
		}
	}
	if s.Mode = locker.Shared; exclusive >= quorum {
		s.Mode = locker.Exclusive
	}
	if noted < quorum {
		s.Note = ""
	}
	slices.Sort(holds)
	slices.Sort(left)
	slices.Sort(fences)
	slices.Sort(waiters)
	at := len(states) - quorum
	s.Holds, s.Left, s.Fence, s.Waiters = holds[at], left[at], fences[at], waiters[at]
	return s
}

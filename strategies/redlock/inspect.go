package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Inspect implements locker.Inspector: it returns what a quorum of the nodes agrees on, that the
// name is held and by whom. Nodes that name different shared holds agree that it is shared; Owner
// and Note are empty then. Holds and Left are the least that a quorum says. Errors: a
// [*QuorumError] if nodes that failed might make the difference; it matches errors.ErrUnsupported
// if too many nodes are no Inspectors.
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
	if state, agreed := agree(states, l.quorum); agreed {
		return state, nil
	}
	if mostHeld(states)+len(answers.failed) < l.quorum {
		return locker.State{}, nil // the nodes disagree: nobody has a quorum, whatever the others would say
	}
	missed := answers.quorumError()
	if err := locker.ContextErr(ctx); err != nil {
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
	answers = l.answersFor(name)
	silent := slices.Clone(l.nodes)
	for len(silent) > 0 {
		select {
		case r := <-replies:
			silent = slices.DeleteFunc(silent, func(n *quorumNode) bool { return n == r.node })
			if answers.add(r.node, r.err, false); r.err == nil {
				states = append(states, r.state)
			}
			if _, agreed := agree(states, l.quorum); agreed {
				return states, answers
			}
		case <-ctx.Done():
			for _, n := range silent {
				answers.add(n, errUnanswered, false)
			}
			return states, answers
		}
	}
	return states, answers
}

// nodeState is what a node says of a name.
type nodeState struct {
	node  *quorumNode
	state locker.State
	err   error
}

// inspect asks the node.
func (n *quorumNode) inspect(ctx context.Context, name string) (s nodeState) {
	s.node = n
	defer recovered(&s.err)
	inspector, ok := locker.As[locker.Inspector](n.inner)
	if !ok {
		s.err = fmt.Errorf("its Locker is no Inspector: %w", errors.ErrUnsupported)
		return s
	}
	s.state, s.err = inspector.Inspect(ctx, name)
	return s
}

// agree returns what a quorum of the states have in common.
func agree(states []locker.State, quorum int) (locker.State, bool) {
	var free, readers []locker.State
	named := map[string][]locker.State{} // by owner: a note may be missing where the hold was restored
	for _, s := range states {
		if !s.Held {
			free = append(free, s)
			continue
		}
		if named[s.Owner] = append(named[s.Owner], s); len(named[s.Owner]) >= quorum {
			return least(named[s.Owner], quorum), true
		}
		if s.Mode == locker.Shared {
			s.Owner, s.Note = "", ""
			readers = append(readers, s)
		}
	}
	switch {
	case len(free) >= quorum:
		return locker.State{}, true
	case len(readers) >= quorum:
		return least(readers, quorum), true
	}
	return locker.State{}, false
}

// mostHeld returns at how many nodes one owner holds, or readers do.
func mostHeld(states []locker.State) (most int) {
	named, readers := map[string]int{}, 0
	for _, s := range states {
		if !s.Held {
			continue
		}
		named[s.Owner]++
		if s.Mode == locker.Shared {
			readers++
		}
		most = max(most, named[s.Owner], readers)
	}
	return most
}

// least returns the first of states, with the Holds and the Left that a quorum of them reaches, and
// the mode and the note that a quorum of them has.
func least(states []locker.State, quorum int) locker.State {
	s := states[0]
	var exclusive, noted int
	holds, left := make([]int, len(states)), make([]time.Duration, len(states))
	for i, other := range states {
		holds[i], left[i] = other.Holds, other.Left
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
	s.Holds, s.Left = holds[len(holds)-quorum], left[len(left)-quorum]
	return s
}

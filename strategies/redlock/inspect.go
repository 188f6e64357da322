package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// Inspect implements locker.Inspector with what a quorum of the nodes agrees on: that the name is
// held, and by whom. Shared holds are agreed on whoever is named first; Owner and Note are empty
// then unless a quorum names the same. Holds and Left are the least that a quorum says. Where nodes
// that failed might make the difference, it is a [*QuorumError], which matches
// errors.ErrUnsupported where too many nodes are of a Locker that is no Inspector.
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
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, l.cfg.attemptTimeout(l.cfg.ttl(0)))
	defer cancel()
	type answer struct {
		node  *quorumNode
		state locker.State
		err   error
	}
	answers := make(chan answer, len(l.nodes))
	for _, n := range l.nodes {
		go func() {
			inspector, ok := n.inner.(locker.Inspector)
			if !ok {
				answers <- answer{node: n, err: fmt.Errorf("its Locker is no Inspector: %w", errors.ErrUnsupported)}
				return
			}
			a := answer{node: n}
			func() {
				defer recovered(&a.err)
				a.state, a.err = inspector.Inspect(ctx, name)
			}()
			answers <- a
		}()
	}
	t := &nodeAnswers{}
	var states []locker.State
	silent := slices.Clone(l.nodes)
	for len(silent) > 0 {
		select {
		case a := <-answers:
			silent = slices.DeleteFunc(silent, func(n *quorumNode) bool { return n == a.node })
			if t.add(a.node, a.err, false); a.err == nil {
				states = append(states, a.state)
			}
			if state, agreed := agree(states, l.quorum); agreed {
				return state, nil
			}
		case <-ctx.Done():
			for _, n := range silent {
				t.add(n, errUnanswered, false)
			}
			silent = nil
		}
	}
	if mostHeld(states)+len(t.failed) < l.quorum {
		return locker.State{}, nil // the nodes disagree: nobody has a quorum, whatever the others would say
	}
	missed := t.quorumError(len(l.nodes), l.quorum)
	if err := ended(caller); err != nil {
		return locker.State{}, fmt.Errorf("%w: %w", err, missed)
	}
	return locker.State{}, missed
}

// agree finds what quorum of these states have in common.
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

// mostHeld is at how many nodes somebody holds, or readers do.
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

// least is the first of states with the Holds and the Left that quorum of them reach, and the mode
// and the note that quorum of them have.
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

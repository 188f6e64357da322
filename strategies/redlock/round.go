package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// round is one operation on all nodes that hold, at once.
type round struct {
	mu            sync.Mutex
	errs          []error // by node; errUnanswered: still under way
	done, pending int
	need          int
	decided       chan struct{} // closed once need have done it, or cannot
	closed        bool
	left          bool // nobody waits for it any more
}

// newRound makes the round in which need nodes are to do something.
func newRound(n, need int) *round {
	r := &round{errs: make([]error, n), need: need, decided: make(chan struct{})}
	for i := range r.errs {
		r.errs[i] = locker.ErrNotHeld
	}
	return r
}

// look closes decided where it is time to. The mutex is held, or nobody else knows the round.
func (r *round) look() {
	if !r.closed && (r.done >= r.need || r.done+r.pending < r.need) {
		r.closed = true
		close(r.decided)
	}
}

// answer takes in what node i did.
func (r *round) answer(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs[i] = err
	r.pending--
	if err == nil {
		r.done++
	}
	r.look()
}

// reply is where a node's answer goes.
type reply struct {
	round *round
	node  int
}

func (a reply) answer(err error) { a.round.answer(a.node, err) }

// over tells whether nobody waits for the answer any more.
func (a reply) over() bool {
	a.round.mu.Lock()
	defer a.round.mu.Unlock()
	return a.round.left
}

// tally is what the nodes did so far.
func (r *round) tally(nodes []*node) *tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &tally{}
	for i, err := range r.errs {
		t.add(nodes[i], err, errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld))
	}
	return t
}

// apart makes of f what each calls.
func (h *hold) apart(f func(m *member, p *part) error) func(*member, *part, reply) {
	return func(m *member, p *part, r reply) {
		go func() { r.answer(f(m, p)) }()
	}
}

// each calls f for each node that holds, and returns when a quorum has done it or cannot any more, when ctx ended, or at
// AttemptTimeout. f returns at once, and answers when it is done. What is under way then goes on. The error is ctx's.
func (h *hold) each(ctx context.Context, f func(m *member, p *part, r reply)) (*tally, error) {
	h.mu.Lock()
	r := newRound(len(h.members), h.quorum)
	parts := make([]*part, len(h.members))
	for i := range h.members {
		switch m := &h.members[i]; {
		case m.part != nil:
			parts[i], r.errs[i] = m.part, errUnanswered
			r.pending++
		case m.asking:
			r.errs[i] = errUnanswered // it does not count in this round
		}
	}
	h.mu.Unlock()
	r.look()
	for i, p := range parts {
		if p != nil {
			f(&h.members[i], p, reply{r, i})
		}
	}
	timer := time.NewTimer(h.timeout)
	defer timer.Stop()
	var err error
	select {
	case <-r.decided:
	case <-timer.C:
	case <-ctx.Done():
		err = ended(ctx)
	}
	r.mu.Lock()
	r.left = true
	r.mu.Unlock()
	return r.tally(h.nodes), err
}

// missed is the error of an operation that did not reach the quorum; ended is ctx's. The hold is lost where it is certain
// that its quorum has ended.
func (h *hold) missed(t *tally, ended error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := error(t.quorumError(len(h.nodes), h.quorum))
	switch {
	case h.gone():
		return h.loss()
	case ended != nil:
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

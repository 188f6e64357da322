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
	answered      chan struct{} // closed once all have answered
	closed        bool
	left          bool          // nobody waits for it any more
	gone          chan struct{} // closed then
}

// newRound makes the round in which need nodes are to do something.
func newRound(n, need int) *round {
	r := &round{errs: make([]error, n), need: need, decided: make(chan struct{}), answered: make(chan struct{}), gone: make(chan struct{})}
	for i := range r.errs {
		r.errs[i] = locker.ErrNotHeld
	}
	return r
}

// begin decides a round that is decided from the start.
func (r *round) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tryDecide()
}

// tryDecide closes decided once the round is decided. The mutex is held.
func (r *round) tryDecide() {
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
	r.tryDecide()
	if r.pending == 0 {
		close(r.answered)
	}
}

// wait waits until the round is decided, for patience at most; once ctx has ended, for unheeded in
// all, and the error is ctx's. Where the quorum is missed, it waits for the other answers as long
// again as that took: they say whether it is lost.
func (r *round) wait(ctx context.Context, patience, unheeded time.Duration) (err error) {
	start := time.Now()
	end := start.Add(patience)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	soon := func(after time.Duration) {
		if sooner := start.Add(after); sooner.Before(end) {
			end = sooner
			timer.Reset(time.Until(end))
		}
	}
	decided, over := r.decided, ctx.Done()
	var answered chan struct{} // nil: it is not waited for
	for {
		select {
		case <-decided:
			if r.won() {
				return nil
			}
			decided, answered = nil, r.answered
			took := time.Since(start)
			soon(took + max(took, minGrace))
		case <-answered:
			return err
		case <-timer.C:
			return err
		case <-over:
			over, err = nil, ended(ctx)
			soon(unheeded)
		}
	}
}

// stopWaiting notes that nobody waits for the round any more.
func (r *round) stopWaiting() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = true
	close(r.gone)
}

// won tells whether the quorum has done it, or there is nothing more to wait for.
func (r *round) won() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done >= r.need || r.pending == 0
}

// answeredBy reports whether node i has answered, or was not asked.
func (r *round) answeredBy(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs[i] != errUnanswered //nolint:errorlint // set by this package itself
}

// tally is what the nodes did so far.
func (r *round) tally(nodes []*quorumNode) *nodeAnswers {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &nodeAnswers{}
	for i, err := range r.errs {
		refused := errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrNotHeld)
		t.add(nodes[i], err, refused)
		if cause := nodes[i].failure(); refused && cause != nil {
			t.absent = append(t.absent, nodes[i].error(fmt.Errorf("it does not hold the lock any more: %w", cause)))
		}
	}
	return t
}

// apart makes of f what each calls. f may end early once nobody waits for the round.
func (h *hold) apart(f func(m *member, p *part, r *round) error) func(*member, *part, reply) {
	return func(m *member, p *part, r reply) {
		go func() { r.answer(f(m, p, r.round)) }()
	}
}

// each calls f for each node that holds, and returns when a quorum has done it or cannot any more,
// when ctx ended, or at AttemptTimeout. f returns at once, and answers when it is done. What is
// under way then goes on. The error is ctx's.
func (h *hold) each(ctx context.Context, f func(m *member, p *part, r reply)) (*nodeAnswers, error) {
	return h.eachFor(ctx, h.timeout, f)
}

// eachFor is each, for at most patience.
func (h *hold) eachFor(ctx context.Context, patience time.Duration, f func(m *member, p *part, r reply)) (*nodeAnswers, error) {
	h.mu.Lock()
	r := newRound(len(h.members), h.quorum)
	parts := make([]*part, len(h.members))
	for i := range h.members {
		switch m := &h.members[i]; {
		case m.part != nil:
			parts[i], r.errs[i] = m.part, errUnanswered
			r.pending++
		case m.asking:
			m.await(r, i, f)
		}
	}
	h.mu.Unlock()
	r.begin()
	for i, p := range parts {
		if p != nil {
			f(&h.members[i], p, reply{r, i})
		}
	}
	err := r.wait(ctx, patience, 0)
	r.stopWaiting()
	for i := range parts {
		if !r.answeredBy(i) {
			h.nodes[i].checkSilence(h.ctx, h.timeout)
		}
	}
	return r.tally(h.nodes), err
}

// missed is the error of an operation that did not reach the quorum; ended is ctx's. The hold is
// lost where it is certain that its quorum has ended.
func (h *hold) missed(t *nodeAnswers, ended error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := error(t.quorumError(len(h.nodes), h.quorum))
	switch {
	case h.gone():
		return h.loss()
	case h.phase == over:
		return locker.ErrReleased
	case ended != nil:
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

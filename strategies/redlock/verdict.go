package redlock

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// tryDecide decides the attempt as soon as the quorum is there or out of reach. The mutex is held.
func (h *hold) tryDecide() {
	if h.phase != gathering {
		return
	}
	v := h.view()
	counting, soon := v.counting()
	switch {
	case counting >= h.quorum && h.win(v):
	case counting >= h.quorum && soon > 0: // those may hold for longer
	case counting+soon < h.quorum, counting >= h.quorum:
		h.miss(false)
	}
}

// win ends the attempt with the lock, if there is enough left of it. The mutex is held.
func (h *hold) win(v quorumView) bool {
	deadline, _ := v.end()
	need := h.cfg.minValidity(h.req.TTL)
	if left := remaining(deadline, v.now); !deadline.IsZero() && left < need {
		outcome := locker.ErrLost
		if h.tokens != nil {
			outcome = locker.ErrUnknownOutcome // the hold goes back to whom it was taken from
		}
		h.late = fmt.Errorf("%w: of the lease %v was left when the quorum was won, %v are needed; it was given back",
			outcome, left.Round(time.Millisecond), need)
		return false
	}
	h.deadline, h.phase = deadline, holding
	h.decide()
	return true
}

// miss ends the attempt without the lock. Where it hangs on answers that may be on their way
// whether others hold it or the nodes failed, it waits for them as long again as the attempt took,
// unless that is over. The mutex is held.
func (h *hold) miss(final bool) {
	err, open := h.late, false
	if err == nil {
		err, open = h.verdict(h.tally())
	}
	switch {
	case !open || final:
		h.fail(err)
	case h.grace == nil:
		h.grace = time.AfterFunc(asLongAgain(time.Since(h.began), h.timeout), h.giveUp)
	}
}

// giveUp ends an attempt that is not decided: what has not answered counts as failed.
func (h *hold) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != gathering {
		return
	}
	for i, n := range h.nodes {
		if h.members[i].asking {
			n.checkSilence(h.ctx, h.timeout)
		}
	}
	h.miss(true)
}

// abandon ends an attempt that is not decided, because its caller left.
func (h *hold) abandon(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase != gathering {
		return
	}
	if h.tokens != nil {
		err = fmt.Errorf("%w: %w: %w; what was taken over is given back", locker.ErrUnknownOutcome, err,
			h.tally().quorumError(len(h.nodes), h.quorum))
	} else if h.sent() {
		err = &abandonedError{ended: err, nodes: h.tally().quorumError(len(h.nodes), h.quorum).unanswered()}
	}
	h.left = true
	h.fail(err)
	h.stop() // the nodes clean up behind what they have sent, and their Close waits for that
}

// sent reports whether anything is under way that was sent to a node. The mutex is held.
func (h *hold) sent() bool {
	under := h.asking
	for i := range h.members {
		if h.members[i].queued {
			under--
		}
	}
	return under > 0
}

// tally is what the nodes answered. The mutex is held.
func (h *hold) tally() *nodeAnswers {
	t, v := &nodeAnswers{}, h.view()
	for i, n := range h.nodes {
		err := v.outcome(v.nodes[i])
		t.add(n, err, refuses(err, h.tokens != nil))
	}
	return t
}

// verdict says why the quorum was missed. mayChange: answers that have not come might change it.
// The mutex is held.
func (h *hold) verdict(t *nodeAnswers) (err error, mayChange bool) { //nolint:revive // the error is what it returns
	if err := h.oneServer(); err != nil {
		return err, false
	}
	return verdict(t, attemptFacts{
		name: h.req.Name, nodes: len(h.nodes), quorum: h.quorum, resume: h.tokens != nil, tookOver: h.took, jitter: h.cfg.WakeJitter,
	})
}

// oneServer returns an error if two nodes are one server. Only an owner that was made for this
// attempt proves that: one that the caller gave may hold by another attempt. The mutex is held.
func (h *hold) oneServer() error {
	if !h.fresh {
		return nil
	}
	i, j, found := sameServer(h.view().nodes, h.owner)
	if !found {
		return nil
	}
	other := "another of the nodes"
	if j >= 0 {
		other = fmt.Sprintf("nodes[%d]", j)
	}
	address := cmp.Or(h.nodes[i].where().Address, "address unknown")
	return invalid(fmt.Sprintf("redlock.New nodes[%d]", i), fmt.Sprintf("the server of %s (%s)", other, address),
		"a Locker for another server: these nodes are one server, and a quorum's share nothing")
}

// fail ends the attempt with err, and gives back what it has. The mutex is held.
func (h *hold) fail(err error) {
	h.phase, h.err, h.gaveBack = over, err, make(chan struct{})
	h.quiet = true // a resume that fails gives the hold back to whom it was taken from
	for i := range h.members {
		p := h.members[i].part
		if p == nil {
			continue
		}
		h.members[i].part, h.members[i].ending = nil, true
		h.back++
		p.quiet.Store(true)
		go func() {
			_ = p.lock.Release(h.ctx) // at the worst it ends by itself
			h.releaseEnded(i)
			h.mu.Lock()
			defer h.mu.Unlock()
			h.back--
			h.settle()
		}()
	}
	h.becomeLeftover()
	h.settle()
	h.decide()
}

// settle notes that an attempt which came to nothing has given back what it had; where the caller
// left, also that the nodes have begun to clean up what they had sent. The mutex is held.
func (h *hold) settle() {
	if h.gaveBack == nil || h.back > 0 || h.left && h.asking > 0 {
		return
	}
	select {
	case <-h.gaveBack:
	default:
		close(h.gaveBack)
	}
}

// decide ends the gathering. The mutex is held.
func (h *hold) decide() {
	if h.grace != nil {
		h.grace.Stop()
	}
	if h.fixed != nil && h.fence == 0 {
		close(h.fixed)
	}
	for i := range h.members {
		h.leaveBehind(i, h.members[i].asking)
	}
	close(h.decided)
}

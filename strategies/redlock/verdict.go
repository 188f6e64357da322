package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// minGrace is the least time that a verdict waits which the answers on their way may change: a node
// in another zone, or whose connection has to be made, takes that much longer than the first.
const minGrace = 20 * time.Millisecond

// tryDecide decides the attempt as soon as the quorum is there or out of reach. The mutex is held.
func (h *hold) tryDecide() {
	if h.phase != gathering {
		return
	}
	var there, coming int
	for i := range h.members {
		switch m := &h.members[i]; {
		case h.counts(m):
			there++
		case h.coming(m):
			coming++
		}
	}
	switch {
	case there >= h.quorum && h.win():
	case there >= h.quorum && coming > 0: // those that come may hold for longer
	case there+coming < h.quorum, there >= h.quorum:
		h.miss(false)
	}
}

// win ends the attempt with the lock, if there is enough left of it. The mutex is held.
func (h *hold) win() bool {
	deadline, _ := h.until(false)
	need := h.cfg.minValidity(h.req.TTL)
	if left := left(deadline); !deadline.IsZero() && left < need {
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
		h.grace = time.AfterFunc(h.again(), h.giveUp)
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
func (h *hold) tally() *tally {
	t := &tally{}
	for i := range h.members {
		m := &h.members[i]
		err := m.err
		switch {
		case m.queued:
			err = errStalled
		case m.asking:
			err = errUnanswered
		case m.part == nil || err != nil:
		case !h.isLive(m.part):
			err = errEnded
		case h.fence > 0 && !h.counts(m):
			err = errUnanswered // its counter is being raised
		}
		refused := errors.Is(err, locker.ErrNotAcquired)
		if h.tokens != nil && !refused {
			refused = errors.Is(err, locker.ErrNotHeld) && !errors.Is(err, locker.ErrLost) // which is of what it had taken over
		}
		t.add(h.nodes[i], err, refused)
	}
	return t
}

// verdict says why the quorum was missed. open: answers that have not come might change it. The
// mutex is held.
func (h *hold) verdict(t *tally) (err error, open bool) { //nolint:revive // the error is what it returns
	no, allowed := len(t.refused), len(h.nodes)-h.quorum
	if h.tokens != nil {
		if no > allowed && !h.took {
			return locker.ErrNotHeld, false
		}
		err = t.quorumError(len(h.nodes), h.quorum)
		if h.took || t.pending > 0 {
			err = fmt.Errorf("%w: %w; what was taken over is given back", locker.ErrUnknownOutcome, err)
		}
		return err, !h.took && no+t.pending > allowed
	}
	if err := h.oneServer(); err != nil {
		return err, false
	}
	// Would the lock have been won, had others not held it? Where nothing has failed, it is they
	// alone who are in the way.
	outOfReach := t.done+t.pending < h.quorum
	if no > 0 && (t.done+no >= h.quorum || outOfReach && len(t.failed) == t.pending) {
		return t.contention(h.req.Name, h.quorum, h.cfg.WakeJitter), false
	}
	return t.quorumError(len(h.nodes), h.quorum), no > 0 && t.done+no+t.pending >= h.quorum
}

// oneServer returns an error if two nodes are one server: one refuses and names this attempt's
// owner as the holder, although that owner was made for this attempt. An owner that the caller gave
// may hold by another attempt, so it proves nothing. Nor do equal addresses: clients behind a
// dialer or a tunnel may all report the same one. The mutex is held.
func (h *hold) oneServer() error {
	if !h.fresh {
		return nil
	}
	for i := range h.members {
		held, refused := errors.AsType[*locker.ContentionError](h.members[i].err)
		if !refused || held.Owner == "" || held.Owner != h.owner {
			continue
		}
		other := "another of the nodes" // it has yet to answer
		for j := range h.members {
			if j != i && h.members[j].part != nil {
				other = fmt.Sprintf("nodes[%d]", j)
				break
			}
		}
		address := cmp.Or(h.nodes[i].where().Address, "address unknown")
		return invalid(fmt.Sprintf("redlock.New nodes[%d]", i), fmt.Sprintf("the server of %s (%s)", other, address),
			"a Locker for another server: these nodes are one server, and a quorum's share nothing")
	}
	return nil
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

package redlock

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
)

// tryDecide decides the attempt as soon as the quorum is reached or out of reach. The mutex is
// held.
func (a *quorumAttempt) tryDecide() {
	if a.phase != gathering {
		return
	}
	v := a.view()
	counting, soon := v.counting()
	switch {
	case counting >= a.quorum && a.succeed(v):
	case counting >= a.quorum && soon > 0: // wait: the pending nodes may hold for longer
	case counting+soon < a.quorum, counting >= a.quorum:
		a.miss(false)
	}
}

// succeed ends the attempt with the lock, if there is enough left of the lease. The mutex is held.
func (a *quorumAttempt) succeed(v *quorumView) bool {
	deadline, _ := v.end()
	need := a.cfg.minValidity(a.req.TTL)
	if left := remaining(deadline, v.now); !deadline.IsZero() && left < need {
		outcome := locker.ErrLost
		if a.tokens != nil {
			outcome = locker.ErrUnknownOutcome // the resume is undone
		}
		a.tooLate = fmt.Errorf("%w: of the lease %v was left when the quorum was won, %v are needed; "+
			"the attempt was undone", outcome, left.Round(time.Millisecond), need)
		return false
	}
	a.deadline, a.phase = deadline, holding
	for i := range a.slots {
		if p := a.slots[i].held; p != nil {
			p.acquisition.Pass()
		}
	}
	a.decide()
	return true
}

// miss ends the attempt without the lock. If missing answers may change the verdict, it first waits
// for them as long again as the attempt took, unless final is set. The mutex is held.
func (a *quorumAttempt) miss(final bool) {
	err, mayChange := a.tooLate, false
	if err == nil {
		err, mayChange = a.verdict()
	}
	switch {
	case !mayChange || final:
		a.fail(err)
	case a.grace == nil:
		a.grace = time.AfterFunc(asLongAgain(time.Since(a.began), a.attemptTimeout()), a.giveUp)
	}
}

// verdict returns why the quorum was missed. mayChange: missing answers might change it. The mutex
// is held.
func (a *quorumAttempt) verdict() (err error, mayChange bool) { //nolint:revive // the error is what it returns
	if err := a.sameServerError(); err != nil {
		return err, false
	}
	if a.tokens != nil {
		return a.answers().resumeVerdict(a.tookOver)
	}
	return a.answers().acquireVerdict()
}

// answers returns the nodes' answers so far. The mutex is held.
func (a *quorumAttempt) answers() *nodeAnswers {
	t, v := a.answersFor(a.req.Name), a.view()
	for i, n := range a.nodes {
		err := v.outcome(&v.nodes[i])
		t.add(n, err, refuses(err, a.tokens != nil))
	}
	return t
}

// sameServerError returns an error if two nodes are one server. Only an owner made for this attempt
// proves it: the caller's may hold by another attempt. The mutex is held.
func (a *quorumAttempt) sameServerError() error {
	if !a.fresh {
		return nil
	}
	i, j, found := sameServer(a.view().nodes, a.owner())
	if !found {
		return nil
	}
	other := "another of the nodes"
	if j >= 0 {
		other = fmt.Sprintf("nodes[%d]", j)
	}
	address := cmp.Or(a.nodes[i].where().Address, "address unknown")
	return argument.Invalid(fmt.Sprintf("redlock.New nodes[%d]", i), fmt.Sprintf("the server of %s (%s)", other, address),
		"a Locker for another server: these nodes are one server, and a quorum's share nothing")
}

// giveUp ends an undecided attempt: nodes without an answer count as failed.
func (a *quorumAttempt) giveUp() {
	a.mu.Lock()
	defer a.unlock()
	if a.phase != gathering {
		return
	}
	for i := range a.slots {
		if s := &a.slots[i]; s.asking {
			s.node.checkSilence(a.ctx, a.attemptTimeout())
		}
	}
	a.miss(true)
}

// abandon ends an undecided attempt after its caller left.
func (a *quorumAttempt) abandon(err error) {
	a.mu.Lock()
	defer a.unlock()
	if a.phase != gathering {
		return
	}
	missed := a.answers().quorumError()
	if a.tokens != nil {
		err = fmt.Errorf("%w: %w: %w; the resume is undone", locker.ErrUnknownOutcome, err, missed)
	} else if a.hasSent() {
		err = &abandonedError{ended: err, nodes: missed.unanswered()}
	}
	a.callerLeft = true
	a.fail(err)
	a.stop() // the nodes clean up unanswered commands, and the Close of their drivers waits for it
}

// hasSent reports whether an acquire sent to a node is in flight. The mutex is held.
func (a *quorumAttempt) hasSent() bool {
	sent := a.inFlight
	for i := range a.slots {
		if a.slots[i].queued {
			sent--
		}
	}
	return sent > 0
}

// fail ends the attempt with err, and releases its node locks. The mutex is held.
func (a *quorumAttempt) fail(err error) {
	a.phase, a.err, a.cleanedUp = undone, err, make(chan struct{})
	for i := range a.slots {
		if s := &a.slots[i]; s.held != nil {
			a.undo(s)
		}
	}
	a.becomeLeftover()
	a.signalCleanedUp()
	a.decide()
}

// undo releases a node lock of a failed attempt in the background. The mutex is held.
func (a *quorumAttempt) undo(s *slot) {
	p := s.held
	s.held, s.ending = nil, true
	a.undoing++
	go func() {
		a.releaseEnded(s, p.undo())
		a.mu.Lock()
		defer a.unlock()
		a.undoing--
		a.signalCleanedUp()
	}()
}

// signalCleanedUp closes cleanedUp when every undo has returned and, if the caller left, no acquire
// is in flight: the process may exit then, since the nodes' own clean-up has begun. The mutex is
// held.
func (a *quorumAttempt) signalCleanedUp() {
	if a.cleanedUp != nil && !isClosed(a.cleanedUp) && a.undoing == 0 && (!a.callerLeft || a.inFlight == 0) {
		close(a.cleanedUp)
	}
}

// decide ends the gathering. The mutex is held.
func (a *quorumAttempt) decide() {
	if a.grace != nil {
		a.grace.Stop()
	}
	if a.fenceKnown != nil && a.fence == 0 {
		close(a.fenceKnown)
	}
	for i := range a.slots {
		a.slots[i].setUnawaited(a.slots[i].asking)
	}
	close(a.decided)
}

// dropEnded drops node locks that end by themselves while the quorum is gathered.
func (a *quorumAttempt) dropEnded() {
	for i := range a.slots {
		a.mu.Lock()
		p, decided := a.slots[i].held, a.phase != gathering
		a.unlock()
		if decided {
			return
		}
		if p == nil || p.lock.Err() == nil { // without the mutex: it may run callbacks
			continue
		}
		a.mu.Lock()
		p.drop(errEnded)
		a.unlock()
		go func() { _ = p.undo() }()
	}
}

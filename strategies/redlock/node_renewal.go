package redlock

import (
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// claim waits until no call of a kind is in flight at the node, and marks one as such. It gives up
// once left is closed. A call that hangs is not repeated: the next one is sent after it.
func (p *nodeLock) claim(inFlight *chan struct{}, left <-chan struct{}) error { //nolint:gocritic // it sets it
	h := p.of
	h.mu.Lock()
	defer h.unlock()
	for p.isCurrent() {
		earlier := *inFlight
		if earlier == nil {
			*inFlight = make(chan struct{})
			return nil
		}
		h.unlock()
		select {
		case <-earlier:
		case <-left:
		}
		h.mu.Lock()
		if isClosed(left) {
			return errUnanswered
		}
	}
	return locker.ErrNotHeld
}

// unclaim ends a claim. The mutex is held.
func unclaim(inFlight *chan struct{}) { //nolint:gocritic // it sets it
	close(*inFlight)
	*inFlight = nil
}

// renew extends the lease at the node, and brings the node lock up to the lock's token and mode.
// Its operation began at began; left is closed when the caller leaves. It does not join a renewal
// in flight: an answer to one sent before began says nothing about now.
func (p *nodeLock) renew(ttl time.Duration, began time.Time, left <-chan struct{}) error {
	if err := p.claim(&p.renewing, left); err != nil {
		return err
	}
	return p.sendRenewal(ttl, began, left)
}

// sendRenewal is renew after claim. If the node has lost its lock and the caller has left,
// sendRenewal restores it there: the restore of the renewal ran before.
func (p *nodeLock) sendRenewal(ttl time.Duration, began time.Time, left <-chan struct{}) error {
	h, sent := p.of, time.Now()
	err := p.extend(ttl)
	h.mu.Lock()
	defer h.unlock()
	unclaim(&p.renewing)
	if err == nil {
		p.renewed = sent
		p.catchUp(sent.Add(ttl))
	}
	if isClosed(left) && h.phase == holding && p.slot.held == nil && h.view().hasQuorum() {
		h.restore(ttl, !h.renewed.IsZero() && !h.renewed.Before(began))
	}
	return err
}

// extend renews the node lock. It adopts the lock's note, token and mode.
func (p *nodeLock) extend(ttl time.Duration) error {
	h := p.of
	ctx, stop := h.untilDeadline()
	defer stop()
	if err := p.lock.Renew(ctx, ttl); err != nil {
		h.mu.Lock()
		defer h.unlock()
		p.dropIfLost(err)
		return err
	}
	p.adoptNote()
	if err := p.raiseToToken(); err != nil {
		return err
	}
	return p.adoptMode()
}

// catchUp renews the node lock in the background if it was granted until grantedUntil, and a
// renewal has moved the Deadline further before the node's reply came. Otherwise the node would not
// count until the next renewal. The mutex is held.
func (p *nodeLock) catchUp(grantedUntil time.Time) {
	h := p.of
	if h.phase != holding || !p.isCurrent() || p.renewing != nil {
		return
	}
	if grantedUntil.Before(h.deadline) && !reaches(p.lock.Deadline(), h.deadline) {
		p.renewing = make(chan struct{})
		ttl, nobodyWaits := h.leaseToAsk(0), make(chan struct{})
		close(nobodyWaits)
		go func() { _ = p.sendRenewal(ttl, time.Now(), nobodyWaits) }()
	}
}

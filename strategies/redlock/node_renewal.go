package redlock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// renewalRequest asks a node lock for a renewal.
type renewalRequest struct {
	pendingReply
	ttl   time.Duration
	began time.Time // when the Renew began that asks for it; zero: another operation asks
}

// inFlightRenewal is a renewal that the node has yet to answer. The requests that come meanwhile
// wait for it, and then get another renewal: an answer to what was sent before says nothing about
// now. A renewal that hangs is not sent again.
type inFlightRenewal struct {
	of             *nodeLock
	requests, next []renewalRequest
	ttl            time.Duration
	sent           time.Time
}

// renew extends the lease at the node, and brings the node lock up to the lock's token and mode. It
// returns at once.
func (p *nodeLock) renew(req renewalRequest) {
	p.of.mu.Lock()
	defer p.of.unlock()
	switch f := p.renewal; {
	case !p.isCurrent():
		req.answer(locker.ErrNotHeld)
	case f == nil:
		p.sendRenewal([]renewalRequest{req})
	default:
		f.next = append(stillWanted(f.next), req)
	}
}

// sendRenewal sends one renewal for all requests. The mutex is held.
func (p *nodeLock) sendRenewal(requests []renewalRequest) {
	f := &inFlightRenewal{of: p, requests: requests, sent: time.Now()}
	for _, req := range requests {
		f.ttl = max(f.ttl, req.ttl)
	}
	p.renewal = f
	go func() { f.answered(p.extend(f.ttl)) }()
}

// extend renews the node lock, raises its counter if that is behind, and changes its mode if that
// is another.
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
	if err := p.raiseToToken(); err != nil {
		return err
	}
	return p.adoptMode()
}

// answered passes the node's answer on to the requests, and sends the next renewal if one was asked
// for meanwhile. If the answer comes after a caller left, and there is nothing held at the node any
// more, the lock is restored there: the renewal could not do it.
func (f *inFlightRenewal) answered(err error) {
	p, h := f.of, f.of.of
	h.mu.Lock()
	defer h.unlock()
	p.renewal = nil
	if err == nil {
		p.renewed = f.sent
	}
	late, succeeded := slices.ContainsFunc(f.requests, renewalRequest.unwanted), f.servedRenewal(h.renewed)
	answerAll(f.requests, err)
	f.sendNext(err)
	if late && h.phase == holding && p.slot.held == nil && h.view().hasQuorum() {
		h.restore(f.ttl, succeeded)
	}
}

// servedRenewal reports whether a request is of the Renew that began at began; zero: none has
// succeeded.
func (f *inFlightRenewal) servedRenewal(began time.Time) bool {
	return slices.ContainsFunc(slices.Concat(f.requests, f.next), func(req renewalRequest) bool {
		return !req.began.IsZero() && req.began.Equal(began)
	})
}

// sendNext sends another renewal to answer the requests that came after f was sent, which ended
// with err. The mutex is held.
func (f *inFlightRenewal) sendNext(err error) {
	p, next := f.of, stillWanted(f.next)
	switch {
	case len(next) > 0 && p.isCurrent():
		p.sendRenewal(next)
	case len(next) > 0:
		answerAll(next, locker.ErrNotHeld)
	case err == nil:
		p.catchUp(f.sent.Add(f.ttl))
	}
}

// catchUp renews the node lock in the background if it was granted until grantedUntil, and a
// renewal has moved the Deadline beyond that before the node's reply came. Otherwise the node would
// not count until the next renewal. The mutex is held.
func (p *nodeLock) catchUp(grantedUntil time.Time) {
	h := p.of
	if h.phase != holding || !p.isCurrent() || p.renewal != nil {
		return
	}
	if grantedUntil.Before(h.deadline) && !reaches(p.lock.Deadline(), h.deadline) {
		p.sendRenewal([]renewalRequest{{pendingReply: nobodyWaits(), ttl: h.leaseToAsk(0)}})
	}
}

// stillWanted returns the requests that somebody waits for.
func stillWanted(requests []renewalRequest) []renewalRequest {
	return slices.DeleteFunc(requests, renewalRequest.unwanted)
}

func answerAll(requests []renewalRequest, err error) {
	for _, req := range requests {
		req.answer(err)
	}
}

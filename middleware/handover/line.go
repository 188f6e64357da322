package handover

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// line holds the requests of this process for one name: the leader or the tenure, and the heirs behind
// it, first in, first out. It exists as long as it has any.
type line struct {
	cohort *cohort
	name   string
	terms  terms   // of the leader or the tenure
	leader *heir   // asks the wrapped Locker; nil: none does
	tenure *tenure // nil: this process does not hold the lock

	first, last *heir
	size        int

	pauseUntil time.Time   // no leader asks before
	checkTimer *time.Timer // asks the server about the tenure; nil: nobody waits
}

// terms are the properties of a requested lease.
type terms struct {
	ttl    time.Duration // zero: the strategy's default
	fenced bool
}

// serve reports whether a hold with the terms t serves a request with the terms w.
func (t terms) serve(w terms) bool { return t.ttl == w.ttl && (t.fenced || !w.fenced) }

// heir is a request in a line.
type heir struct {
	line          *line
	ahead, behind *heir
	inLine        bool // it is in the line
	queued        int  // number of heirs and leaders ahead at entry
	terms         terms

	ready      chan struct{} // closed when the wait ends; nil: it led at once
	pauseUntil time.Time     // it does not ask the wrapped Locker before
	tenure     *tenure       // handed over to it, or begun by it; it must be used or passed on
	from       lease.Hold    // the previous holder
	fence      int64         // of its Lock
}

// enter adds an heir for a request. It returns nil if the lock cannot be handed over to the request.
func (c *cohort) enter(ctx context.Context, req locker.Request) *heir {
	refused := ctx.Err() != nil || req.Validate() != nil // by the wrapped Locker
	c.mu.Lock()
	defer c.mu.Unlock()
	l, wants := c.lines[req.Name], terms{req.TTL, req.Fenced}
	if l == nil {
		made := new(struct { // one allocation for both
			line line
			heir heir
		})
		made.line = line{cohort: c, name: req.Name, leader: &made.heir, terms: wants}
		made.heir = heir{line: &made.line, terms: wants}
		c.lines[req.Name] = &made.line
		return &made.heir
	}
	if refused || c.closing || !l.terms.serve(wants) {
		return nil
	}
	h := &heir{line: l, terms: wants, ready: make(chan struct{}), queued: l.size}
	if l.leader != nil {
		h.queued++
	}
	l.push(h)
	return h
}

// hasWaiters reports whether a request waits in the line of name, or leads it after a wait.
func (c *cohort) hasWaiters(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lines[name]
	return l != nil && (l.first != nil || l.leader != nil && l.leader.ready != nil)
}

// leave removes h: it has its Lock, or has failed. A tenure without a Lock is passed on or released.
func (c *cohort) leave(h *heir) {
	c.mu.Lock()
	l, t := h.line, h.tenure
	h.tenure = nil
	switch {
	case t != nil: // without a Lock
		if result := t.handOn(h.from, time.Now()); result != handed {
			go t.passOrRelease(h.from, result)
		}
	case l.leader == h:
		l.leader = nil
	case h.inLine:
		l.remove(h)
	}
	l.advance()
	c.mu.Unlock()
}

// giveUp removes h if its ctx has ended, and returns the holder in this process, or nil. If the
// lock was handed over to h meanwhile, h stays and gets it.
func (c *cohort) giveUp(h *heir, ctxEnded bool) (held *locker.ContentionError, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ctxEnded || h.tenure != nil {
		return nil, false
	}
	if h.inLine {
		h.line.remove(h)
	}
	return h.line.holder(), true
}

// holder describes the holder in this process, or returns nil. mu is held.
func (l *line) holder() *locker.ContentionError {
	t := l.tenure
	if t == nil || !t.ended.IsZero() {
		return nil
	}
	held := &locker.ContentionError{Name: l.name}
	if t.holder != nil {
		held.Owner, held.Note = t.holder.Owner(), t.note
		if end := t.hold.Deadline(); !end.IsZero() {
			held.Left = max(time.Until(end), 0).Round(time.Millisecond)
			held.RetryAfter = held.Left
		}
	}
	return held
}

// advance lets the first heir ask the wrapped Locker if nobody does and this process does not hold
// the lock. It removes an empty line. mu is held.
func (l *line) advance() {
	switch h := l.first; {
	case l.leader != nil, l.tenure != nil:
	case h != nil:
		l.remove(h)
		l.leader, l.terms, h.pauseUntil = h, h.terms, l.pauseUntil
		close(h.ready)
	case l.cohort.lines[l.name] == l:
		delete(l.cohort.lines, l.name)
		if l.checkTimer != nil {
			l.checkTimer.Stop()
		}
	}
}

func (l *line) push(h *heir) {
	h.inLine, h.ahead = true, l.last
	if l.last == nil {
		l.first = h
	} else {
		l.last.behind = h
	}
	l.last = h
	l.size++
	if l.checkTimer == nil {
		l.checkTimer = time.AfterFunc(l.untilCheck(), l.checkForHeirs)
	}
}

// untilCheck returns the time until the next checkForHeirs. mu is held.
func (l *line) untilCheck() time.Duration {
	if l.tenure != nil && !l.tenure.ended.IsZero() { // its release is in flight
		return maxUnconfirmed
	}
	return checkEvery
}

// checkRelease lets a pending checkForHeirs run in time for a release that begins. mu is held.
func (l *line) checkRelease() {
	if l.checkTimer != nil && l.checkTimer.Stop() { // else nobody waits, or it runs already
		l.checkTimer.Reset(maxUnconfirmed)
	}
}

// checkForHeirs asks the server whether it still has the hold, once in checkEvery while heirs wait and
// nothing is handed over. The check does not extend the lease: a lease must not grow because others
// wait. After a release without an answer for maxUnconfirmed it lets the first heir ask the wrapped
// Locker.
func (l *line) checkForHeirs() {
	l.cohort.mu.Lock()
	defer l.cohort.mu.Unlock()
	l.checkTimer = nil
	if l.first == nil {
		return
	}
	switch t, now := l.tenure, time.Now(); {
	case t == nil:
	case !t.ended.IsZero():
		t.end()
	case t.holder != nil && !t.checking && now.Sub(t.confirmed) >= checkEvery/2:
		t.startCheck(noopTTL, now)
	}
	l.checkTimer = time.AfterFunc(checkEvery, l.checkForHeirs)
}

func (l *line) remove(h *heir) {
	if h.ahead == nil {
		l.first = h.behind
	} else {
		h.ahead.behind = h.behind
	}
	if h.behind == nil {
		l.last = h.ahead
	} else {
		h.behind.ahead = h.ahead
	}
	h.inLine = false
	l.size--
}

// watchClose makes Close of the driver call sendHeirsOn.
func (c *cohort) watchClose() {
	c.watch.Do(func() { lease.WatchClose(c.inner, c, (*cohort).sendHeirsOn) })
}

// sendHeirsOn sends all heirs to the wrapped Locker. It refuses them: its driver is being closed.
func (c *cohort) sendHeirsOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for _, l := range c.lines {
		for h := l.first; h != nil; h = l.first {
			l.remove(h)
			close(h.ready)
		}
	}
}

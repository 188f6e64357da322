package locker

import (
	"context"
	"time"
)

// tracing is what a Lock keeps of one Trace, to report its later events. It does not change.
type tracing struct {
	ctx    context.Context
	trace  *Trace
	source Source
	start  time.Time
	next   *tracing // the one that was there before
}

// TraceLock makes lock report its later events to t too: Renewed, Released and Lost, with the values of ctx. Unlike a Trace
// in the ctx of the acquire, it hears of this Lock alone, not of those that a strategy makes it of. Where the lock has
// ended already, Lost or Released, then without an error, is called at once: each Trace hears of an end. It is for middleware,
// before the lock is handed over.
func TraceLock(ctx context.Context, lock *Lock, t *Trace) {
	if !lock.valid() || t == nil {
		return
	}
	added := &tracing{ctx: context.WithoutCancel(ctx), trace: t, source: SourceOf(lock), start: time.Now()}
	lock.mu.Lock()
	ended := lock.expire()
	if added.next = lock.tracing; added.next != nil {
		added.start = added.next.start
	}
	lock.tracing = added
	over, answered := lock.err, lock.answered
	if t.Lost != nil {
		lock.watch()
	}
	lock.mu.Unlock()
	ended.detach()
	if over != nil {
		added.lost(lock, over)
	}
	if answered {
		added.released(lock, nil)
	}
}

// SourceOf says where lock comes from, as far as its Lease tells ([Sourced]).
func SourceOf(lock *Lock) Source {
	if !lock.valid() {
		return Source{}
	}
	if s, ok := lock.current().(Sourced); ok {
		return s.Source()
	}
	return Source{}
}

// traced reports Acquired to the Trace in the ctx of the acquire, and keeps it if it wants to hear more. Nobody else knows
// the lock yet.
func (l *Lock) traced(ctx context.Context, t *Trace) {
	later := t.Renewed != nil || t.Released != nil || t.Lost != nil
	if t.Acquired == nil && !later {
		return
	}
	made := &tracing{ctx: context.WithoutCancel(ctx), trace: t, source: SourceOf(l), start: time.Now()}
	if later {
		l.tracing = made
	}
	if t.Acquired != nil {
		g := l.facts()
		t.Acquired(made.ctx, AcquiredInfo{
			Source: made.source, Name: g.Name, Owner: g.Owner, Mode: g.Mode, TTL: g.TTL, Deadline: g.Deadline, Fence: g.Fence,
		})
	}
	if t.Lost != nil { // it waits for the end, whoever else does
		l.mu.Lock()
		l.watch()
		l.mu.Unlock()
	}
}

// traces are the Traces that lock reports to, the newest first.
func (l *Lock) traces() *tracing {
	if !l.valid() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tracing
}

// renewal is a renewal that is to be reported, and what it ended.
type renewal struct {
	ended    *ending
	tracing  *tracing
	ttl      time.Duration
	deadline time.Time
	err      error
}

// renewed is the report of a renewal that ended with err, and ended the lock with ended where that is not nil.
func (l *Lock) renewed(ended *ending, ttl time.Duration, err error) renewal {
	return renewal{ended, l.traces(), ttl, l.Deadline(), err}
}

// empty tells whether there is nobody to report to.
func (r renewal) empty() bool {
	for t := r.tracing; t != nil; t = t.next {
		if t.trace.Renewed != nil {
			return false
		}
	}
	return r.ended == nil
}

// report reports the end, then the renewal.
func (r renewal) report(l *Lock) {
	defer r.trace(l, r.tracing)
	r.ended.run()
}

func (r renewal) trace(l *Lock, t *tracing) {
	for ; t != nil; t = t.next {
		if t.trace.Renewed != nil {
			t.trace.Renewed(t.ctx, RenewedInfo{Source: t.source, Name: l.Name(), TTL: r.ttl, Deadline: r.deadline, Err: r.err})
		}
	}
}

func (l *Lock) traceReleased(err error) {
	l.mu.Lock()
	l.answered = true // for one that is added now
	t := l.tracing
	l.mu.Unlock()
	for ; t != nil; t = t.next {
		t.released(l, err)
	}
}

func (t *tracing) released(l *Lock, err error) {
	if t.trace.Released != nil {
		t.trace.Released(t.ctx, ReleasedInfo{Source: t.source, Name: l.Name(), Mode: l.Mode(), Held: time.Since(t.start), Err: err})
	}
}

// lost reports that l ended with err, unless that was a release.
func (t *tracing) lost(l *Lock, err error) {
	if err == ErrReleased { //nolint:errorlint // set by Release itself
		return
	}
	if t.trace.Lost != nil {
		t.trace.Lost(t.ctx, LostInfo{Source: t.source, Name: l.Name(), Mode: l.Mode(), Held: time.Since(t.start), Err: err})
	}
}

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

// TraceLock makes lock report its later events to t too: Renewed, Released and Lost, with the
// values of ctx. Unlike a Trace in the ctx of the acquire, it hears of this Lock alone, not of
// those that a strategy makes it of. Where the lock has ended already, Lost or Released, then
// without an error, is called at once: each Trace hears of an end. It is for middleware, before the
// lock is handed over.
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
	if t.Lost != nil {
		lock.watch()
	}
	if over, answered := lock.err, lock.answered; over != nil {
		lock.enqueue(report{run: func() {
			added.lost(lock, over)
			if answered {
				added.released(lock, nil)
			}
		}})
	}
	lock.mu.Unlock()
	lock.report(ended)
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

// traced reports Acquired to the Trace in the ctx of the acquire, and keeps it if it wants to hear
// more. Nobody else knows the lock yet.
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

// renewed enqueues the report of a renewal that ended with err.
func (l *Lock) renewed(ttl time.Duration, err error) {
	if !l.valid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	traces, deadline := l.tracing, l.deadline
	for t := traces; t != nil; t = t.next {
		if t.trace.Renewed != nil {
			l.enqueue(report{func() { traces.renewed(l, ttl, deadline, err) }, true})
			return
		}
	}
}

func (t *tracing) renewed(l *Lock, ttl time.Duration, deadline time.Time, err error) {
	for ; t != nil; t = t.next {
		if t.trace.Renewed != nil {
			t.trace.Renewed(t.ctx, RenewedInfo{Source: t.source, Name: l.Name(), TTL: ttl, Deadline: deadline, Err: err})
		}
	}
}

// releasedBy reports that a release ended with err.
func (l *Lock) releasedBy(err error) {
	l.mu.Lock()
	l.answered = true // for a Trace that is added now
	if traces := l.tracing; traces != nil {
		l.enqueue(report{run: func() {
			for t := traces; t != nil; t = t.next {
				t.released(l, err)
			}
		}})
	}
	l.mu.Unlock()
	l.report(nil)
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

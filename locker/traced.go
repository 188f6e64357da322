package locker

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// tracing is a Trace for the later events of a Lock, in a list. It is immutable.
type tracing struct {
	ctx    context.Context
	trace  *locktrace.Trace
	source locktrace.Source
	start  time.Time
	next   *tracing // the one added before; nil: none
}

// startTracing reports Acquired to t, the Trace in the acquire's ctx. If t has callbacks for later events,
// it is kept. No other goroutine has the lock yet.
func (l *lockState) startTracing(ctx context.Context, t *locktrace.Trace) {
	later := t.Renewed != nil || t.Released != nil || t.Lost != nil
	if t.Acquired == nil && !later {
		return
	}
	made := &tracing{ctx: context.WithoutCancel(ctx), trace: t, source: l.Source(), start: time.Now()}
	if later {
		l.tracing = made
	}
	if t.Acquired != nil {
		g := l.facts()
		t.Acquired(made.ctx, locktrace.AcquiredInfo{
			Source: made.source, Name: g.Name, Owner: g.Owner, Mode: g.Mode.String(), TTL: g.TTL, Deadline: g.Deadline,
			Fence: g.Fence,
		})
	}
	if t.Lost != nil { // the end must be noticed even if nothing else waits for it
		l.mu.Lock()
		l.watchDeadline()
		l.mu.Unlock()
	}
}

// enqueueRenewed enqueues the report of a renewal with the result err. The mutex is held.
func (l *lockState) enqueueRenewed(ttl time.Duration, err error) {
	traces, deadline := l.tracing, l.deadline
	for t := traces; t != nil; t = t.next {
		if t.trace.Renewed != nil {
			l.enqueue(report{func() { traces.renewed(l, ttl, deadline, err) }, true})
			return
		}
	}
}

// renewed reports a renewal to t and the Traces added before.
func (t *tracing) renewed(l *lockState, ttl time.Duration, deadline time.Time, err error) {
	for ; t != nil; t = t.next {
		if t.trace.Renewed != nil {
			t.trace.Renewed(t.ctx, locktrace.RenewedInfo{Source: t.source, Name: l.Name(), TTL: ttl, Deadline: deadline,
				Err: err})
		}
	}
}

// reportRelease reports a release with the result err. The name stays taken until keep, unless zero.
func (l *lockState) reportRelease(err error, keep time.Time) {
	l.mu.Lock()
	l.answered = true // Trace reports the release to later Traces
	if traces := l.tracing; traces.hasReleased() {
		l.enqueue(report{run: func() {
			for t := traces; t != nil; t = t.next {
				t.released(l, err, keep)
			}
		}})
	}
	l.unlockAndCall(nil, false)
}

// hasReleased reports whether a Trace of t has a Released.
func (t *tracing) hasReleased() bool {
	for ; t != nil; t = t.next {
		if t.trace.Released != nil {
			return true
		}
	}
	return false
}

// released reports a release to t.
func (t *tracing) released(l *lockState, err error, keep time.Time) {
	if t.trace.Released != nil {
		t.trace.Released(t.ctx, locktrace.ReleasedInfo{
			Source: t.source, Name: l.Name(), Mode: l.Mode().String(), Held: time.Since(t.start), KeepUntil: keep,
			Err: err,
		})
	}
}

// allLost reports the loss of l to t and the Traces added before, even if one panics.
func (t *tracing) allLost(l *lockState, err error) {
	if t != nil {
		defer t.next.allLost(l, err)
		t.lost(l, err)
	}
}

// lost reports the loss of l to t, unless err is ErrReleased: then l was released.
func (t *tracing) lost(l *lockState, err error) {
	if err == ErrReleased { //nolint:errorlint // set by Release itself
		return
	}
	if t.trace.Lost != nil {
		t.trace.Lost(t.ctx, locktrace.LostInfo{Source: t.source, Name: l.Name(), Mode: l.Mode().String(),
			Held: time.Since(t.start), Err: err})
	}
}

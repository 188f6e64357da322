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

// reportAcquired reports the acquire to t. No other goroutine has the lock yet.
func (l *lockState) reportAcquired(ctx context.Context, t *locktrace.Trace) {
	if t.Acquired != nil {
		g := l.facts()
		t.Acquired(context.WithoutCancel(ctx), locktrace.AcquiredInfo{
			Source: l.Source(), Name: g.Name, Owner: g.Owner, Mode: g.Mode.String(), TTL: g.TTL, Deadline: g.Deadline,
			Fence: g.Fence,
		})
	}
}

// enqueueEach enqueues a report that calls f for each Trace, the latest first, even if one panics.
// Only a traced lock calls it: the others do not allocate f. The mutex is held.
func (l *lockState) enqueueEach(droppable bool, f func(*tracing)) {
	t := l.tracing
	l.enqueue(report{func() { t.each(f) }, droppable})
}

func (t *tracing) each(f func(*tracing)) {
	if t != nil {
		defer t.next.each(f)
		f(t)
	}
}

// enqueueRenewed enqueues the report of a renewal with the result err. The mutex is held.
func (l *lockState) enqueueRenewed(ttl time.Duration, err error) {
	wanted := false
	for t := l.tracing; t != nil; t = t.next {
		wanted = wanted || t.trace.Renewed != nil
	}
	if !wanted { // a report would cost allocations, and in the background a goroutine
		return
	}
	deadline := l.info().Deadline
	l.enqueueEach(true, func(t *tracing) {
		if t.trace.Renewed != nil {
			t.trace.Renewed(t.ctx, locktrace.RenewedInfo{Source: t.source, Name: l.info().Name, TTL: ttl, Deadline: deadline,
				Err: err})
		}
	})
}

// reportRelease reports a release with the result err. The name stays taken until keep, unless zero.
func (l *lockState) reportRelease(err error, keep time.Time) {
	l.mu.Lock()
	l.answered = true // Trace reports the release to later Traces
	if l.tracing != nil {
		l.enqueueEach(false, func(t *tracing) { t.released(l, err, keep) })
	}
	l.unlockAndCall(nil, false)
}

// released reports a release to t.
func (t *tracing) released(l *lockState, err error, keep time.Time) {
	if t.trace.Released != nil {
		t.trace.Released(t.ctx, locktrace.ReleasedInfo{
			Source: t.source, Name: l.info().Name, Mode: l.Mode().String(), Held: time.Since(t.start), KeepUntil: keep, Err: err,
		})
	}
}

// lost reports the loss of l to t, unless err is ErrReleased: then l was released.
func (t *tracing) lost(l *lockState, err error) {
	if t.trace.Lost != nil && err != ErrReleased { //nolint:errorlint // set by Release itself
		t.trace.Lost(t.ctx, locktrace.LostInfo{
			Source: t.source, Name: l.info().Name, Mode: l.Mode().String(), Held: time.Since(t.start), Err: err,
		})
	}
}

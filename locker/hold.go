package locker

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Name implements lease.Hold.
func (l *lockState) Name() string { return l.info().Name }

// TTL implements lease.Hold.
func (l *lockState) TTL() time.Duration { return l.info().TTL }

// Owner implements lease.Hold.
func (l *lockState) Owner() string { return l.facts().Owner }

// Mode implements lease.Hold.
func (l *lockState) Mode() Mode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info().Mode
}

// Deadline implements lease.Hold.
func (l *lockState) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.info().Deadline
}

// Source implements lease.Hold.
func (l *lockState) Source() locktrace.Source {
	return lease.TraitsOf(l.Lease()).Source
}

// Lease implements lease.Hold.
func (l *lockState) Lease() lease.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden.Load().lease
}

// Forgotten implements lease.Hold.
func (l *lockState) Forgotten() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgotten()
}

// Wrap implements lease.Hold.
func (l *lockState) Wrap(wrap func(lease.Lease) lease.Lease) {
	wrapped := wrap(l.Lease()) // without the mutex: wrap may call the lock
	if !l.valid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden.Load().lease = wrapped
}

// WrapContext implements lease.Hold.
func (l *lockState) WrapContext(wrap func(context.Context) context.Context) {
	if !l.valid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	inner := l.addValues
	if inner == nil {
		l.addValues = wrap
		return
	}
	l.addValues = func(ctx context.Context) context.Context { return wrap(inner(ctx)) }
}

// Trace implements lease.Hold.
func (l *lockState) Trace(ctx context.Context, t *locktrace.Trace) {
	l.addTrace(ctx, t, time.Now(), false)
}

// addTrace is Trace for a hold since start. background: it waits for no callback.
func (l *lockState) addTrace(ctx context.Context, t *locktrace.Trace, start time.Time, background bool) {
	if !l.valid() || t == nil || t.Renewed == nil && t.Released == nil && t.Lost == nil {
		return
	}
	added := &tracing{ctx: context.WithoutCancel(ctx), trace: t, source: l.Source(), start: start}
	ended := l.lock()
	if added.next = l.tracing; added.next != nil {
		added.start = added.next.start
	}
	l.tracing = added
	if t.Lost != nil {
		l.watchDeadline()
	}
	if over, answered := l.err, l.answered; over != nil {
		l.enqueue(report{run: func() {
			added.lost(l, over)
			if answered {
				added.released(l, nil, time.Time{})
			}
		}})
	}
	l.unlockAndCall(ended, background)
}

// Renew implements lease.Hold.
func (l *lockState) Renew(ctx context.Context) error {
	return l.do(ctx, lease.Op{Kind: lease.OpRenew, TTL: l.info().TTL}, nil, true)
}

// MarkLost implements lease.Hold.
func (l *lockState) MarkLost(cause error) {
	l.mu.Lock()
	l.unlockAndCall(l.lose(l.lost("", cause)), false)
}

// ExplainExpiry implements lease.Hold.
func (l *lockState) ExplainExpiry(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.cause = cause
	}
}

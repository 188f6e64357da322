package locker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Hold is Lock.Hold.
func (l *lockState) Hold() lease.Hold { return (*middlewareHold)(l) }

// middlewareHold is a lockState with the methods of [lease.Hold].
type middlewareHold lockState

func (h *middlewareHold) lock() *lockState { return (*lockState)(h) }

// Format implements fmt.Formatter for every verb, as that of the Lock does.
func (h *middlewareHold) Format(f fmt.State, verb rune) { h.lock().Format(f, verb) }

// LogValue implements slog.LogValuer, as that of the Lock does.
func (h *middlewareHold) LogValue() slog.Value { return h.lock().LogValue() }

// Name implements lease.Hold.
func (h *middlewareHold) Name() string { return h.lock().Name() }

// TTL implements lease.Hold.
func (h *middlewareHold) TTL() time.Duration { return h.lock().TTL() }

// Owner implements lease.Hold.
func (h *middlewareHold) Owner() string { return h.lock().Owner() }

// Mode implements lease.Hold.
func (h *middlewareHold) Mode() lease.Mode { return h.lock().Mode() }

// Deadline implements lease.Hold.
func (h *middlewareHold) Deadline() time.Time { return h.lock().Deadline() }

// Err implements lease.Hold.
func (h *middlewareHold) Err() error { return h.lock().Err() }

// Source implements lease.Hold.
func (h *middlewareHold) Source() locktrace.Source {
	if s, ok := lease.Find[lease.Sourced](h.lock().current()); ok {
		return s.Source()
	}
	return locktrace.Source{}
}

// Lease implements lease.Hold.
func (h *middlewareHold) Lease() lease.Lease { return h.lock().current() }

// Forgotten implements lease.Hold.
func (h *middlewareHold) Forgotten() bool {
	l := h.lock()
	if !l.valid() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgotten()
}

// Wrap implements lease.Hold.
func (h *middlewareHold) Wrap(wrap func(lease.Lease) lease.Lease) {
	l := h.lock()
	wrapped := wrap(l.current()) // without the mutex: wrap may ask the lock
	if !l.valid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hidden.Load().lease = wrapped
}

// WrapContext implements lease.Hold.
func (h *middlewareHold) WrapContext(wrap func(context.Context) context.Context) {
	l := h.lock()
	if !l.valid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	extra := l.extras()
	inner := extra.addValues
	if inner == nil {
		extra.addValues = wrap
		return
	}
	extra.addValues = func(ctx context.Context) context.Context { return wrap(inner(ctx)) }
}

// Trace implements lease.Hold.
func (h *middlewareHold) Trace(ctx context.Context, t *locktrace.Trace) {
	lock := h.lock()
	if !lock.valid() || t == nil {
		return
	}
	added := &tracing{ctx: context.WithoutCancel(ctx), trace: t, source: h.Source(), start: time.Now()}
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
				added.released(lock, nil, time.Time{})
			}
		}})
	}
	lock.mu.Unlock()
	lock.report(ended)
}

// Renew implements lease.Hold.
func (h *middlewareHold) Renew(ctx context.Context) error {
	l := h.lock()
	ttl := l.TTL()
	ended, err := l.do(ctx, "renew", lease.Op{Kind: lease.OpRenew, TTL: ttl}, nil)
	l.renewed(ttl, err)
	l.reportInBackground(ended)
	return err
}

// Disown implements lease.Hold.
func (h *middlewareHold) Disown() bool {
	l := h.lock()
	if !l.valid() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disowned = !l.handleTaken.Load()
	return l.disowned
}

// MarkLost implements lease.Hold.
func (h *middlewareHold) MarkLost(cause error) {
	l := h.lock()
	if !l.valid() {
		return
	}
	l.mu.Lock()
	ended := l.lose(l.lost("", cause))
	l.mu.Unlock()
	l.report(ended)
}

// ExplainExpiry implements lease.Hold.
func (h *middlewareHold) ExplainExpiry(cause error) {
	l := h.lock()
	if !l.valid() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if cause != nil || l.extra != nil {
		l.extras().cause = cause
	}
}

package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Observer watches acquisitions for one middleware. D is the middleware's data of each.
type Observer[D any] struct {
	hooks Hooks[D]
	trace *locktrace.Trace
}

// Hooks are called for the events of an acquisition, one at a time, and never after its End, unless
// they say otherwise. They may be nil.
type Hooks[D any] struct {
	Attempt func(context.Context, *Acquisition[D], locktrace.AttemptInfo) // with the ctx of the attempt
	Waiting func(*Acquisition[D], locktrace.WaitingInfo)
	Woken   func(*Acquisition[D], locktrace.WokenInfo)
	// Contended is called once, at the first sign of a contended lock: a refusal or, without one, a
	// wait behind queued others of this process.
	Contended func(_ *Acquisition[D], refusal error, queued int)
	// Waiters is called with 1 when an acquisition begins to wait for the first time, and then with
	// -1 at its End: an attempt at a frozen server lasts longer than the waits around it.
	Waiters func(_ *Acquisition[D], change int64)
	// NodeFailing and NodeRecovered are called for a change of a node of a quorum, whether or not
	// the acquisition has ended.
	NodeFailing, NodeRecovered func(context.Context, locktrace.NodeInfo)
}

// NewObserver makes the Observer of a middleware, once.
func NewObserver[D any](hooks Hooks[D]) *Observer[D] {
	o := &Observer[D]{hooks: hooks}
	o.trace = report(o.outermost)
	o.trace.NodeFailing, o.trace.NodeRecovered = hooks.NodeFailing, hooks.NodeRecovered
	return o
}

// Of returns the acquisition of ctx, or nil.
func (o *Observer[D]) Of(ctx context.Context) *Acquisition[D] {
	a, _ := ctx.Value(o).(*Acquisition[D])
	return a
}

// outermost returns the outermost acquisition of ctx, the one with o's own Trace.
func (o *Observer[D]) outermost(ctx context.Context) *Acquisition[D] {
	a := o.Of(ctx)
	for a != nil && a.outer != nil {
		a = a.outer
	}
	return a
}

// report makes the Trace that reports events to an acquisition.
func report[D any](to func(context.Context) *Acquisition[D]) *locktrace.Trace {
	tell := func(ctx context.Context, f func(*Acquisition[D])) {
		if a := to(ctx); a != nil {
			a.Meanwhile(func() { f(a) })
		}
	}
	return &locktrace.Trace{
		Attempt: func(ctx context.Context, info locktrace.AttemptInfo) {
			tell(ctx, func(a *Acquisition[D]) { a.attempt(ctx, info) })
		},
		Waiting: func(ctx context.Context, info locktrace.WaitingInfo) {
			tell(ctx, func(a *Acquisition[D]) { a.wait(info) })
		},
		Woken: func(ctx context.Context, info locktrace.WokenInfo) {
			tell(ctx, func(a *Acquisition[D]) { a.woken(info) })
		},
	}
}

// Acquisition is one acquisition while it lasts. It is its own context, so watching takes two
// allocations.
type Acquisition[D any] struct {
	context.Context
	Data     D
	observer *Observer[D]
	// of the same middleware, around a strategy made of other Lockers; nil: this is the outermost
	outer *Acquisition[D]
	start time.Time

	mu        sync.Mutex
	over      bool
	contended bool
	handed    bool  // the lock was handed over in this process
	refusal   error // the last one
	attempts  int
	source    locktrace.Source // of the last one
	waits     int              // going on
	since     time.Time        // the begin of the latest wait; zero: none
	waited    time.Duration
}

// Begin watches an acquisition. Its ctx, for the Locker inside, is the second result.
func (o *Observer[D]) Begin(ctx context.Context) (*Acquisition[D], context.Context) {
	a := &Acquisition[D]{Context: ctx, observer: o, outer: o.Of(ctx), start: time.Now()}
	trace := o.trace
	if a.outer != nil {
		trace = report(func(context.Context) *Acquisition[D] { return a })
	}
	return a, locktrace.With(a, trace)
}

// Value implements context.Context.
func (a *Acquisition[D]) Value(key any) any {
	if key == any(a.observer) {
		return a
	}
	return a.Context.Value(key)
}

// Age is how long ago the acquisition began.
func (a *Acquisition[D]) Age() time.Duration { return time.Since(a.start) }

// Meanwhile calls f unless the acquisition has ended: a strategy may report late events. No hook
// runs meanwhile.
func (a *Acquisition[D]) Meanwhile(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		f()
	}
}

// attempt counts the attempts of the outermost strategy, not those of its parts.
func (a *Acquisition[D]) attempt(ctx context.Context, info locktrace.AttemptInfo) {
	if !info.AtNode {
		a.attempts++
		a.source = info.Source
		if errors.Is(info.Err, locker.ErrNotAcquired) {
			a.recordContention(info.Err, 0)
		}
	}
	if f := a.observer.hooks.Attempt; f != nil {
		f(ctx, a, info)
	}
}

// recordContention records a refusal, or waiters ahead in the queue.
func (a *Acquisition[D]) recordContention(refusal error, queued int) {
	if refusal != nil {
		a.refusal = refusal
	}
	if a.contended {
		return
	}
	a.contended = true
	if f := a.observer.hooks.Contended; f != nil {
		f(a, refusal, queued)
	}
}

func (a *Acquisition[D]) wait(info locktrace.WaitingInfo) {
	if info.Err == nil || errors.Is(info.Err, locker.ErrNotAcquired) {
		a.recordContention(info.Err, info.Queued)
	}
	if a.waits++; a.waits == 1 {
		if a.since.IsZero() {
			a.waiters(1)
		}
		a.since = time.Now()
	}
	if f := a.observer.hooks.Waiting; f != nil {
		f(a, info)
	}
}

func (a *Acquisition[D]) woken(info locktrace.WokenInfo) {
	if a.waits == 0 {
		return // it began to wait before it was watched
	}
	a.waits--
	a.handed = info.By == locktrace.ByHandOver
	if a.waits == 0 {
		a.waited += time.Since(a.since)
	}
	if f := a.observer.hooks.Woken; f != nil {
		f(a, info)
	}
}

func (a *Acquisition[D]) waiters(change int64) {
	if f := a.observer.hooks.Waiters; f != nil {
		f(a, change)
	}
}

// Result is the result of an acquisition.
type Result struct {
	Outcome    Outcome
	Source     locktrace.Source // as far as it is known
	Attempts   int
	Contended  bool  // it was refused, or had to queue behind others of this process
	Refusal    error // the last one, even if the lock was acquired later; nil: none
	Took       time.Duration
	HandedOver bool          // by a holder of this process, without an attempt
	Waited     time.Duration // the part of Took without the attempts
	GaveUp     bool          // while it waited
}

// End ends the watching with the results of Acquire.
func (a *Acquisition[D]) End(lock *locker.Lock, err error) Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	if errors.Is(err, locker.ErrNotAcquired) {
		a.recordContention(err, 0)
	}
	a.over = true
	r := Result{
		Outcome: OfAcquire(a.Context, err), Source: lock.Hold().Source(), Attempts: a.attempts, Contended: a.contended,
		Refusal:    a.refusal,
		HandedOver: a.handed && err == nil, Took: time.Since(a.start), GaveUp: a.waits > 0,
	}
	if r.Source.Strategy == "" {
		r.Source = a.source
	}
	if r.GaveUp {
		a.waits = 0
		a.waited += time.Since(a.since)
	}
	if !a.since.IsZero() {
		a.waiters(-1)
	}
	r.Waited = a.waited
	return r
}

package locker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// lockState is the state of a Lock, and its lease.Hold. Strategies, middleware and timers keep the
// lockState and not the Lock: a Lock forgotten by the program is garbage-collected.
type lockState struct {
	hidden atomic.Pointer[hidden] // set once

	mu          sync.Mutex  // guards the fields below, unless atomic, and those of hidden
	err         error       // reason of the end; set once
	handleTaken atomic.Bool // Handle was called
	released    bool        // Release was called
	answered    bool        // the outcome of the release is known
	done        chan struct{}
	timer       *time.Timer // of the Deadline; nil until something waits for the end
	after       *afterDone  // the first one to call
	tracing     *tracing    // nil if there is no Trace
	reports     *reports    // events to report; nil: none
	cause       error       // why the lease is no longer renewed; nil: unknown
	keepUntil   time.Time   // end of MinHold, if a release keeps the name; zero: none

	// converting has an item while a conversion or a SetNote is in flight. nil: none ever was.
	converting chan struct{}
	addValues  func(context.Context) context.Context // applied by Context to its parent; nil: none

	// strong is the Lock until the first call of forgotten, weak afterwards. weak is not set at
	// once: making a weak pointer takes about as long as making the Lock.
	strong *Lock
	weak   weak.Pointer[Lock]
}

// hidden holds the secrets of a lock: they must not be printed. A Lease may contain the token. An
// atomic.Pointer hides them: printers of unexported fields, as in test frameworks, follow all other
// pointers and interfaces.
type hidden struct {
	info    lease.HoldInfo // without MinHold: see keepUntil; Name and TTL never change, and need no mutex
	lease   lease.Lease
	tokened tokened // the strategy's Lease, if its token changes; nil: the token is info.Token; never changes
}

// tokened is a Lease whose token changes: see lease.Lease.
type tokened interface{ Token() string }

func (l *lockState) info() *lease.HoldInfo { return &l.hidden.Load().info }

// NewLock returns the Lock of a new hold, for strategies. It reports Acquired to the Trace in ctx,
// and later events too. Without a Trace it keeps nothing of ctx.
func NewLock(ctx context.Context, g lease.HoldInfo, l lease.Lease) *Lock {
	made := &struct { // one allocation for both
		state  lockState
		hidden hidden
	}{}
	made.hidden.info, made.hidden.lease = g, l
	made.hidden.tokened, _ = lease.Find[tokened](l)
	s, lock := &made.state, new(Lock)
	s.hidden.Store(&made.hidden)
	lock.state.Store(s)
	s.strong = lock
	if g.MinHold > 0 { // it counts from now on: later than the acquire at the server
		s.keepUntil = time.Now().Add(g.MinHold)
	}
	if t := locktrace.From(ctx); t != nil {
		start := time.Now()
		s.reportAcquired(ctx, t)
		s.addTrace(ctx, t, start, true)
	}
	return lock
}

// valid reports whether l is or was a hold. Only notHeld never was.
func (l *lockState) valid() bool { return l != notHeld }

// facts returns the present HoldInfo. It chooses a random owner if there is none yet.
func (l *lockState) facts() lease.HoldInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.valid() && l.info().Owner == "" {
		l.info().Owner = lease.NewToken()
	}
	g := *l.info()
	g.MinHold = l.restOfMinHold()
	return g
}

// restOfMinHold returns the rest of MinHold, rounded up to whole milliseconds. The mutex is held.
func (l *lockState) restOfMinHold() time.Duration {
	if l.keepUntil.IsZero() {
		return 0
	}
	left := max(time.Until(l.keepUntil), 0)
	return (left + time.Millisecond - 1).Truncate(time.Millisecond)
}

// do runs an operation other than a release. invalid is an error in its arguments, or nil. background:
// do waits for no callback.
func (l *lockState) do(ctx context.Context, op lease.Op, invalid error, background bool) (err error) {
	method, name, noun := wordsOf(op)
	if ctx == nil {
		invalid = argument.NilContext("Lock." + method + " ctx")
	}
	if err = invalid; err == nil && op.Kind != lease.OpRenew && l.valid() {
		var done func()
		if done, err = l.beginConversion(ctx); err == nil {
			defer done()
		}
	}
	if err == nil {
		err = l.Err()
	}
	var result lease.Result
	sends := err == nil
	if sends {
		result, err = l.Lease().Do(whileHeld{ctx, l}, op)
	}
	ended := l.lock()
	if sends {
		if errors.Is(err, ErrNotHeld) && l.err == nil {
			ended = l.lose(l.gone(noun, err))
		}
		err = l.keep(op, result, err)
	}
	err = opError(name, l.info().Name, err)
	if op.Kind == lease.OpRenew {
		l.enqueueRenewed(op.TTL, err)
	}
	l.unlockAndCall(ended, background)
	return err
}

// whileHeld is the ctx of an operation. Its Err also reports the end of the lock: nothing is resent
// after the end. Its Done does not, and costs nothing: each send has a bound of its own, and an
// outcome after the end changes nothing.
type whileHeld struct {
	context.Context
	lock *lockState
}

// Cancellable makes driver.Cancellable ask the wrapped ctx.
func (w whileHeld) Cancellable() bool { return driver.Cancellable(w.Context) }

// Err implements context.Context.
func (w whileHeld) Err() error {
	if err := w.Context.Err(); err != nil {
		return err
	}
	if w.lock.peek() != nil {
		return context.Canceled
	}
	return nil
}

// wordsOf returns the Lock's method for an operation of do, its OpError.Op, and its noun in errors.
func wordsOf(op lease.Op) (method, name, noun string) {
	switch {
	case op.Kind == lease.OpRenew:
		return "Renew", "renew", "renewal"
	case op.Kind == lease.OpNote:
		return "SetNote", "note", "change of its note"
	case op.Mode == Shared:
		return "Downgrade", "downgrade", "downgrade"
	default:
		return "Upgrade", "upgrade", "upgrade"
	}
}

// beginConversion waits until no conversion and no SetNote of the lock is in flight. None begins
// until done is called: replies in another order than the server executed the commands would leave the
// Lock in the wrong mode.
func (l *lockState) beginConversion(ctx context.Context) (done func(), err error) {
	l.mu.Lock()
	if l.converting == nil {
		l.converting = make(chan struct{}, 1)
	}
	turn := l.converting
	l.mu.Unlock()
	select {
	case turn <- struct{}{}: // also if ctx has ended
		return func() { <-turn }, nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keep records the answer to an operation, unless the lock has ended meanwhile. The mutex is held.
func (l *lockState) keep(op lease.Op, result lease.Result, err error) error {
	if l.err != nil {
		return l.err
	}
	if err != nil {
		if op.Kind == lease.OpConvert && op.Mode == Shared && errors.Is(err, ErrUnknownOutcome) {
			l.info().Mode = Shared // the server may have downgraded it: nobody may rely on more
		}
		return err
	}
	switch op.Kind {
	case lease.OpConvert:
		l.info().Mode = op.Mode
	case lease.OpRenew:
		if result.Deadline.IsZero() {
			l.info().Deadline = time.Time{}
		}
	}
	if !l.info().Deadline.IsZero() && result.Deadline.After(l.info().Deadline) {
		l.info().Deadline = result.Deadline
	}
	l.info().Fence = max(l.info().Fence, result.Fence)
	return nil
}

// release is Lock.Release.
func (l *lockState) release(ctx context.Context) (err error) {
	if ctx == nil { // Release ends the hold despite the error
		ctx = context.Background()
		defer func() {
			if err == nil || !l.valid() {
				err = opError("release", l.Name(), argument.NilContext("Lock.Release ctx"))
			}
		}()
	}
	if !l.valid() {
		return opError("release", l.Name(), ErrNotHeld)
	}
	ended := l.lock()
	if l.released {
		l.unlock(ended)
		return opError("release", l.info().Name, ErrReleased)
	}
	l.released = true
	sender, before := l.hidden.Load().lease, l.err
	defer func() { err = l.sendRelease(ctx, sender, before) }() // even if a callback panics
	if before != nil {
		l.unlock(ended)
		return nil
	}
	ended = l.end(ErrReleased)
	l.mu.Unlock()
	ended.callSignals(ErrReleased)
	ended.callBlocking(ErrReleased)
	return nil
}

// sendRelease sends the release. before is the error of an earlier end of the lock, or nil if the release
// ends it.
func (l *lockState) sendRelease(ctx context.Context, sender lease.Lease, before error) error {
	l.mu.Lock()
	keep := l.keepUntil
	if l.restOfMinHold() == 0 {
		keep = time.Time{}
	}
	l.mu.Unlock()
	_, err := sender.Do(ctx, lease.Op{Kind: lease.OpRelease, KeepUntil: keep})
	switch {
	case errors.Is(err, ErrNotHeld) && before == nil:
		err = l.gone("release", err)
	case before != nil && (err == nil || errors.Is(err, ErrNotHeld)):
		err = before
	case before != nil:
		err = fmt.Errorf("%w; the release of what may be left failed: %w", before, err)
	}
	err = opError("release", l.Name(), err)
	l.reportRelease(err, keep)
	return err
}

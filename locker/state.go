package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// lockState is the state of a Lock, and its lease.Hold. Strategies, middleware and timers keep the
// lockState and not the Lock: a Lock forgotten by the program is garbage-collected.
type lockState struct {
	hidden atomic.Pointer[hidden] // nil in notHeld

	name  string
	ttl   time.Duration
	mu    sync.Mutex // guards the fields below, unless atomic, and hidden.lease
	owner string     // empty until first used, if the strategy chose none
	fence int64

	deadline    time.Time
	err         error       // reason of the end; set once
	handleTaken atomic.Bool // Handle was called
	mode        Mode
	released    bool // Release was called
	answered    bool // the outcome of the release is known
	done        chan struct{}
	timer       *time.Timer // of the Deadline; nil until something waits for the end
	after       *afterDone  // the first one to call
	tracing     *tracing    // nil if there is no Trace
	reports     *reports    // events to report; nil: none
	extra       *extra      // nil: all its fields are zero

	// strong is the Lock until the first call of forgotten, weak afterwards. weak is not set at
	// once: making a weak pointer takes about as long as making the Lock.
	strong *Lock
	weak   weak.Pointer[Lock]
}

// extra holds the fields of few locks; in the others they are zero. A separate struct saves memory in
// programs with many locks.
type extra struct {
	cause error // reason why the lease is no longer renewed; nil: unknown
	// converts is closed at the end of the conversion or SetNote in flight; nil: none
	converts  chan struct{}
	addValues func(context.Context) context.Context // applied by Context to its parent; nil: none
	tokened   atomic.Pointer[lease.Tokened]         // the strategy's Lease, if Tokened; see hidden
	keepUntil time.Time                             // end of MinHold, if a release keeps the name; zero: none
}

// extras returns l.extra to change it, and makes it if nil. The mutex is held.
func (l *lockState) extras() *extra {
	if l.extra == nil {
		l.extra = new(extra)
	}
	return l.extra
}

// hidden holds the secrets of a lock: they must not be printed. A Lease may contain the token. An
// atomic.Pointer hides them: printers of unexported fields, as in test frameworks, follow all other
// pointers and interfaces.
type hidden struct {
	token string
	lease lease.Lease // guarded by lockState.mu
}

// valid reports whether l is or was a hold. Only notHeld never was.
func (l *lockState) valid() bool { return l.hidden.Load() != nil }

// tokened returns the strategy's Lease, before any wrapper, if its token changes.
func (l *lockState) tokened() (t lease.Tokened, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.extra == nil {
		return nil, false
	}
	if first := l.extra.tokened.Load(); first != nil {
		return *first, true
	}
	return nil, false
}

// facts returns the present Grant. It chooses a random owner if there is none yet.
func (l *lockState) facts() lease.Grant {
	if !l.valid() {
		return lease.Grant{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner == "" {
		l.owner = lease.NewToken()
	}
	return lease.Grant{
		Name: l.name, Owner: l.owner, Token: l.hidden.Load().token, Mode: l.mode, TTL: l.ttl, Deadline: l.deadline,
		Fence:   l.fence,
		MinHold: l.restOfMinHold(),
	}
}

// restOfMinHold returns the rest of MinHold, rounded up to whole milliseconds. The mutex is held.
func (l *lockState) restOfMinHold() time.Duration {
	if l.extra == nil || l.extra.keepUntil.IsZero() {
		return 0
	}
	left := max(time.Until(l.extra.keepUntil), 0)
	return (left + time.Millisecond - 1).Truncate(time.Millisecond)
}

// dropMinHold is Lock.DropMinHold.
func (l *lockState) dropMinHold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.extra != nil {
		l.extra.keepUntil = time.Time{}
	}
}

// keepUntil returns the end of MinHold: a release leaves the name taken until then. It is zero if
// MinHold has passed, or there is none.
func (l *lockState) keepUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restOfMinHold() == 0 {
		return time.Time{}
	}
	return l.extra.keepUntil
}

// Name is Lock.Name.
func (l *lockState) Name() string { return l.name }

// Mode is Lock.Mode.
func (l *lockState) Mode() Mode {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode
}

// Owner is Lock.Owner.
func (l *lockState) Owner() string { return l.facts().Owner }

// TTL is Lock.TTL.
func (l *lockState) TTL() time.Duration { return l.ttl }

// Handle is Lock.Handle.
func (l *lockState) Handle() Handle {
	g := l.facts()
	if l.valid() {
		l.handleTaken.Store(true)
		t, ok := lease.Find[lease.Tokened](l.Lease())
		if !ok { // a wrapper without Unwrap hides it
			t, ok = l.tokened()
		}
		if ok {
			g.Token = t.Token()
		}
	}
	return NewHandle(g)
}

// Fence is Lock.Fence.
func (l *lockState) Fence() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fence
}

// Deadline is Lock.Deadline.
func (l *lockState) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deadline
}

// renew is Lock.Renew.
func (l *lockState) renew(ctx context.Context, ttl time.Duration) error {
	op := lease.Op{Kind: lease.OpRenew, TTL: cmp.Or(ttl, l.ttl)}
	return l.do(ctx, "renew", op, validateTTL("Lock.Renew ttl", ttl), false)
}

// methods are the methods of Lock, by the Op of their errors.
var methods = map[string]string{"renew": "Renew", "upgrade": "Upgrade", "downgrade": "Downgrade", "note": "SetNote"}

// do runs an operation other than a release. invalid is an error in its arguments, or nil. background:
// do waits for no callback.
func (l *lockState) do(
	ctx context.Context, name string, op lease.Op, invalid error, background bool,
) (err error) {
	if ctx == nil {
		invalid = driver.NilContext("Lock." + methods[name] + " ctx")
	}
	if err = invalid; err == nil {
		err = l.Err()
	}
	var term lease.Term
	sends := err == nil
	if sends {
		term, err = l.Lease().Do(whileHeld{ctx, l}, op)
	}
	ended := l.lock()
	if sends {
		if errors.Is(err, ErrNotHeld) && l.err == nil {
			ended = l.lose(l.gone(noun(op), err))
		}
		err = l.keep(op, term, err)
	}
	err = opError(name, l.name, err)
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

// noun returns the operation as errors name it: "the renewal".
func noun(o lease.Op) string {
	switch {
	case o.Kind == lease.OpRenew:
		return "renewal"
	case o.Kind == lease.OpConvert && o.Mode == Shared:
		return "downgrade"
	case o.Kind == lease.OpConvert:
		return "upgrade"
	case o.Kind == lease.OpNote:
		return "change of its note"
	default:
		return o.Kind.String()
	}
}

// keep records the answer to an operation, unless the lock has ended meanwhile. The mutex is held.
func (l *lockState) keep(op lease.Op, term lease.Term, err error) error {
	if l.err != nil {
		return l.err
	}
	if err != nil {
		if op.Kind == lease.OpConvert && op.Mode == Shared && errors.Is(err, ErrUnknownOutcome) {
			l.mode = Shared // the server may have downgraded it: nobody may rely on more
		}
		return err
	}
	switch op.Kind {
	case lease.OpConvert:
		l.mode = op.Mode
	case lease.OpRenew:
		if term.Deadline.IsZero() {
			l.deadline = time.Time{}
		}
	}
	if !l.deadline.IsZero() && term.Deadline.After(l.deadline) {
		l.deadline = term.Deadline
	}
	l.fence = max(l.fence, term.Fence)
	return nil
}

// Release is Lock.Release.
func (l *lockState) Release(ctx context.Context) (err error) {
	if ctx == nil { // Release ends the hold despite the error
		ctx = context.Background()
		defer func() {
			if err == nil || !l.valid() {
				err = opError("release", l.Name(), driver.NilContext("Lock.Release ctx"))
			}
		}()
	}
	if !l.valid() {
		return opError("release", l.Name(), ErrNotHeld)
	}
	ended := l.lock()
	if l.released {
		l.unlock(ended)
		return opError("release", l.name, ErrReleased)
	}
	l.released = true
	sender, before := l.hidden.Load().lease, l.err
	defer func() { err = l.release(ctx, sender, before) }() // even if a callback panics
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

// release sends the release. before is the error of an earlier end of the lock, or nil if the release
// ends it.
func (l *lockState) release(ctx context.Context, sender lease.Lease, before error) error {
	keep := l.keepUntil()
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

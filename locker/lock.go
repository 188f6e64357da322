package locker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/callchain"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Lock is one hold. The nil and the zero Lock are not held: their methods return ErrNotHeld. A Lock
// is safe for concurrent use and must not be copied.
//
// Every Lock must be released. One garbage-collected while held is forgotten: it is no longer
// renewed, and ends at its Deadline as lost, with [ErrForgotten]. A Lock is in use, and not
// forgotten, while the program has the Lock, the ctx or the cancel function of its Context, or a
// ctx derived from it; a goroutine with nothing but the channel of the ctx's Done does not count.
// After Done or Handle, or with an AfterDone callback, a Lock is never taken for forgotten: another
// goroutine or process may rely on the hold.
type Lock struct {
	state atomic.Pointer[lockState] // nil in the zero Lock; printers do not follow it
}

// notHeld is the state of all nil and zero Locks. It never was a hold.
var notHeld = func() *lockState {
	l := &lockState{err: ErrNotHeld}
	l.hidden.Store(new(hidden))
	return l
}()

// load returns the state of l.
func (l *Lock) load() *lockState {
	if l != nil {
		if s := l.state.Load(); s != nil {
			return s
		}
	}
	return notHeld
}

// Name returns the lock's name.
func (l *Lock) Name() string { return l.load().Name() }

// Mode returns how the lock is held. Downgrade and Upgrade change it.
func (l *Lock) Mode() Mode { return l.load().Mode() }

// Owner returns the owner of the hold: that of the Request or of its ctx, or a random one.
func (l *Lock) Owner() string { return l.load().Owner() }

// TTL returns how long the lease lasts after the acquire and after each Renew(ctx, 0).
func (l *Lock) TTL() time.Duration { return l.load().TTL() }

// Handle returns the Handle with which another process can take the hold over ([Resume]). Whoever
// has the Handle can release the lock.
func (l *Lock) Handle() Handle {
	s := l.load()
	g := s.facts()
	s.handleTaken.Store(true)
	if t := s.hidden.Load().tokened; t != nil {
		g.Token = t.Token()
	}
	return newHandle(g)
}

// Fence returns the fencing token. It increases from one holder of the name to the next. It is zero
// if the Request did not ask for one. Refuse to write with a zero token: a check such as fence <=
// $1 accepts it for a row that was never written with one.
func (l *Lock) Fence() int64 {
	s := l.load()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info().Fence
}

// Deadline returns the time, by the local clock, until which no conflicting hold can exist, under
// the assumptions of the package comment. A renewal moves it. It is zero if the lease never ends,
// and for the nil and the zero Lock.
func (l *Lock) Deadline() time.Time { return l.load().Deadline() }

// Err returns nil while the lock is held, and then always the same error. It matches ErrReleased or
// ErrLost. The nil and the zero Lock return ErrNotHeld.
func (l *Lock) Err() error { return l.load().Err() }

// loss returns that of Err, or nil.
func (l *Lock) loss() *LostError {
	loss, _ := errors.AsType[*LostError](l.Err())
	return loss
}

// Done returns a channel that is closed when the lock is released, lost, or past its Deadline,
// whether or not the server can be reached. It is a signal, not a barrier: see the package comment.
func (l *Lock) Done() <-chan struct{} { return l.load().Done() }

// AfterDone calls f once, with the error of Err, when the lock ends. If the lock has ended already,
// AfterDone calls f before it returns. If Release, Renew, SetNote, Upgrade or Downgrade ends the
// lock, f runs in the goroutine of that call; Release calls f before it sends. In all other cases,
// and if another callback of the lock runs when one of the other four ends it, f runs in a goroutine
// of this lock alone: an f that blocks delays no other lock. AfterDone takes no goroutine while the
// lock is held.
//
// If f panics, the other callbacks still run and the release is still sent; then the panic
// continues in the goroutine that called f. stop removes f, and reports whether f will never run
// because of it.
func (l *Lock) AfterDone(f func(error)) (stop func() bool) {
	return l.load().afterDone(&afterDone{f: f})
}

// Context returns a copy of parent that ends when the lock ends; context.Cause then returns the
// error of Err. It carries the hold and its owner for this name, and values of middleware, such as
// the span of the hold. With it a reentrant lock is re-entered. With another strategy, an acquire
// of the same lock fails with [ErrNested].
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	s := l.load()
	s.mu.Lock()
	addValues := s.addValues
	s.mu.Unlock()
	if addValues != nil {
		parent = addValues(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	if s.valid() {
		ctx = callchain.WithLock(ctx, s.Name(), s.Owner(), l)
	}
	stop := s.afterDone(&afterDone{f: func(err error) { cancel(err) }, signal: true})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
		runtime.KeepAlive(l) // a program with cancel has not forgotten the lock
	}
}

// Renew extends the lease to ttl from now, or to TTL if ttl is zero. It never shortens a lease and
// never revives one: after Done it sends nothing. ctx bounds the call.
//
// Errors: ErrLost, ErrReleased, ErrUnknownOutcome and ErrNotReplicated (the Deadline stays as it was),
// ErrInvalid, the client's.
func (l *Lock) Renew(ctx context.Context, ttl time.Duration) error {
	s := l.load()
	op := lease.Op{Kind: lease.OpRenew, TTL: cmp.Or(ttl, s.info().TTL)}
	return s.do(ctx, op, validateTTL("Lock.Renew ttl", ttl), false)
}

// Downgrade turns an exclusive hold into a shared one, without a moment between. From the call on,
// nobody may rely on the exclusive hold. Conversions of one Lock run one at a time.
//
// Errors: ErrLost, ErrReleased, ErrUnknownOutcome (Mode is Shared from then on, but others may
// still be kept out; another Downgrade lets them in), errors.ErrUnsupported, the client's.
func (l *Lock) Downgrade(ctx context.Context) error {
	return l.load().do(ctx, lease.Op{Kind: lease.OpConvert, Mode: Shared}, nil, false)
}

// Upgrade turns a shared hold into an exclusive one. If there are other holders it fails at once,
// and the hold stays shared.
//
// Errors: a *ContentionError with another holder, and those of Downgrade. After any of them Mode
// stays Shared.
func (l *Lock) Upgrade(ctx context.Context) error {
	return l.load().do(ctx, lease.Op{Kind: lease.OpConvert, Mode: Exclusive}, nil, false)
}

// SetNote replaces the Note of the Request, as others see it in [Inspect], [Watch],
// [ContentionError] and leader.Observe. The note has at most 1024 bytes; an empty one removes it.
// The lease and the fencing token stay as they are. With strategies/reentrant all holds of an owner
// have one note.
//
// The hold gets a fresh token. An earlier Handle is void, as after a Resume: make another one.
// SetNote and conversions of one Lock run one at a time.
//
// Errors: ErrLost, ErrReleased, ErrUnknownOutcome (others see an old note or the new one; the next
// renewal makes it the new one), ErrInvalid, ErrNotReplicated (the note was replaced, but a
// failover could undo it, and the lock would be lost), errors.ErrUnsupported, the client's.
func (l *Lock) SetNote(ctx context.Context, note string) error {
	return l.load().do(ctx, lease.Op{Kind: lease.OpNote, Note: note}, validateLen("Lock.SetNote note", note), false)
}

// Release ends the hold. It is terminal whatever its outcome: a second call returns ErrReleased and
// sends nothing. A cancelled ctx does not stop it; the strategy bounds the wait for the answer
// (ReleaseTimeout in its Config). The release is sent even if the lock was lost. With
// Request.MinHold the name stays taken until MinHold has passed, unless DropMinHold was called.
//
// Errors: ErrLost (the hold had ended before, somebody else may have held the lock meanwhile),
// ErrUnknownOutcome (the lock frees itself at its TTL at the latest), ErrReleased, ErrInvalid (ctx
// is nil; the lock was released all the same), the client's.
func (l *Lock) Release(ctx context.Context) error { return l.load().release(ctx) }

// DropMinHold makes Release free the name at once, whatever is left of Request.MinHold. Call it
// before the Release if nothing was done under the lock, so that another can do it. It sends
// nothing.
func (l *Lock) DropMinHold() {
	s := l.load()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepUntil = time.Time{}
}

// Hold returns the lock as strategies and middleware act on it. Programs that acquire locks do not
// need it.
func (l *Lock) Hold() lease.Hold { return l.load() }

// String describes the lock: name, mode, owner, fence and state, never the token.
func (l *Lock) String() string { return l.load().String() }

// Format implements fmt.Formatter for every verb, as String does.
func (l *Lock) Format(f fmt.State, verb rune) { l.load().Format(f, verb) }

// LogValue implements slog.LogValuer, without the token.
func (l *Lock) LogValue() slog.Value { return l.load().LogValue() }

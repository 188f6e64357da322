package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// Hold is a Lock as strategies and middleware act on it. Lock.Hold returns it. Only Lock implements
// it, and it may grow. It is printed and logged as the Lock is, without the token. The Holds of one
// Lock are equal (==).
//
// Strategies and middleware that need a lock beyond its acquire keep the Hold, and not the Lock. A
// Hold does not keep the Lock from being garbage-collected, so [Hold.Forgotten] can notice it.
//
// Wrap, WrapContext and Trace are for middleware before it returns the Lock, by one goroutine at a
// time.
type Hold interface {
	Name() string        // as Lock.Name
	Owner() string       // as Lock.Owner
	Mode() Mode          // as Lock.Mode
	TTL() time.Duration  // as Lock.TTL
	Deadline() time.Time // as Lock.Deadline
	Err() error          // as Lock.Err

	// Source returns the Source of the Lease's [Traits].
	Source() locktrace.Source
	// Lease returns the Lease in its wrappers, or nil if there is none.
	Lease() Lease
	// Wrap puts wrap around the Lease. wrap gets nil from a Lock without one, as of a test double.
	Wrap(wrap func(Lease) Lease)
	// WrapContext makes Lock.Context pass its parent through wrap, to add values. If two wraps add
	// a value for one key, the later WrapContext counts.
	WrapContext(wrap func(context.Context) context.Context)
	// Trace reports the later events of the lock (Renewed, Released, Lost) to t too, with the
	// values of ctx. Unlike a Trace in the ctx of the acquire, t gets the events of this Lock
	// alone, not of the Locks within it, as of a quorum. If the lock has ended, Trace calls Lost at
	// once, or Released without an error.
	Trace(ctx context.Context, t *locktrace.Trace)

	// Renew is Lock.Renew(ctx, 0) without waiting for callbacks. Trace.Renewed, and the callbacks
	// of a loss, run in order in a goroutine of this lock. If more than 64 reports wait, the oldest
	// reports of renewals are dropped.
	Renew(ctx context.Context) error

	// MarkLost ends the lock with a *locker.LostError, unless it ended before. The error matches
	// cause, or is cause if cause is a *locker.LostError. MarkLost sends nothing.
	MarkLost(cause error)
	// Forgotten reports whether the lock is held and the program has dropped it: the Lock was
	// garbage-collected, and nothing waits for its end. A watchdog calls it before each renewal,
	// and does not renew a forgotten lock. The first call returns false and begins to observe the
	// Lock: a lock released before its first renewal costs nothing.
	Forgotten() bool
	// ExplainExpiry records the reason why renewals stopped: if the lease runs out, Err matches
	// ErrLost and cause. It does not end the lock. nil removes the record.
	ExplainExpiry(cause error)
}

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
// Strategies and middleware that keep a lock beyond its acquire keep the Hold and not the Lock. A
// Hold does not keep the Lock from being garbage-collected, so [Hold.Forgotten] can find that out.
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

	// Source returns where the lock comes from, if its Lease is [Sourced].
	Source() locktrace.Source
	// Lease returns the Lease with what is wrapped around it; nil if there is none.
	Lease() Lease
	// Wrap puts wrap around the Lease. wrap gets nil from a Lock without one, such as that of a
	// test double.
	Wrap(wrap func(Lease) Lease)
	// WrapContext makes Lock.Context pass its parent through wrap, which adds values to it. If two
	// wraps add a value for one key, that of the later WrapContext counts.
	WrapContext(wrap func(context.Context) context.Context)
	// Trace reports the later events of the lock (Renewed, Released, Lost) to t too, with the
	// values of ctx. Unlike a Trace in the ctx of the acquire, t gets the events of this Lock
	// alone, not of the Locks that a strategy makes it of. If the lock has ended, Lost, or Released
	// without an error, is called at once, so that each Trace gets the end.
	Trace(ctx context.Context, t *locktrace.Trace)

	// Renew is Lock.Renew(ctx, 0), except that it waits for no callback. Trace.Renewed and, if the
	// renewal finds the lock lost, the callbacks of its end run in order in a goroutine that works
	// for this lock alone. A callback that blocks delays the reports of this lock, and no renewal.
	// If more than 64 reports wait, the oldest that report only a renewal are dropped.
	Renew(ctx context.Context) error

	// MarkLost ends the lock with an error that matches ErrLost and cause, unless it ended before. A
	// *locker.LostError is that error itself. It sends nothing.
	MarkLost(cause error)
	// Forgotten reports whether the lock is held and the program has dropped it: the Lock was
	// garbage-collected, and nothing waits for its end. A watchdog calls it before each renewal,
	// and does not renew a forgotten lock. The first call returns false and begins to observe the
	// Lock, so locks that are released before the first renewal cost nothing.
	Forgotten() bool
	// ExplainExpiry records why the lease is no longer renewed: if the lease runs out, Err matches
	// ErrLost and cause. It does not end the lock. nil removes what was recorded.
	ExplainExpiry(cause error)
}

package locktrace

import (
	"context"
	"time"
)

// Trace is a set of callbacks for the events of locks, in the manner of net/http/httptrace. Any of
// them may be nil. They must be quick. The ctx they get carries the values of the acquire's ctx.
//
// Attempt, Waiting, Woken and Acquired run in the goroutine of the acquire, possibly several at
// once. A blocking one delays this acquire, and the requests of this process behind it for the same
// name.
//
// Renewed, Released and Lost of one lock run in order, one at a time, in the goroutine of the event
// or in one of this lock alone. A blocking one delays the later reports of its lock, and neither a
// renewal nor a release. If more than 64 reports of a lock wait, the oldest reports of renewals are
// dropped. NodeFailing and NodeRecovered run in order in a goroutine of the quorum.
type Trace struct {
	Attempt  func(context.Context, AttemptInfo)  // a strategy made an attempt; a quorum's nodes report theirs too
	Waiting  func(context.Context, WaitingInfo)  // a waiter begins to wait
	Woken    func(context.Context, WokenInfo)    // a waiter stopped waiting and tries again
	Acquired func(context.Context, AcquiredInfo) // a Lock was made
	Renewed  func(context.Context, RenewedInfo)  // a renewal ended
	Released func(context.Context, ReleasedInfo) // a release ended
	Lost     func(context.Context, LostInfo)     // a Lock was lost

	// NodeFailing and NodeRecovered report a change of one node of a quorum, once per change. A
	// failure is reported to the Trace of the first traced operation to notice it, and its end to
	// the same Trace, whichever operation notices it. They are about the node, not about a lock.
	NodeFailing   func(context.Context, NodeInfo) // a node began to fail, or stopped answering
	NodeRecovered func(context.Context, NodeInfo) // a failing node answers again
}

// Source is the origin of an event.
type Source struct {
	Strategy string // "single"
	Client   string // "go-redis"
	Address  string // the server, "host:port"; several separated by commas; "" if the client does not report it
}

// AttemptInfo describes one attempt to acquire.
type AttemptInfo struct {
	Source
	Name   string // the lock's name, here and below
	Mode   string // "exclusive" or "shared", here and below
	AtNode bool   // an attempt at one node; the quorum reports the whole attempt too
	// Sends is the number of commands sent: several if a reply was lost or the lock was held, 0 for
	// a quorum. One command may be for several locks.
	Sends   int
	Elapsed time.Duration // from the first send to the outcome
	Err     error         // nil: acquired
}

// WaitingInfo describes the beginning of a wait.
type WaitingInfo struct {
	Name       string        // as of AttemptInfo
	Mode       string        // as of AttemptInfo
	Queued     int           // waiters ahead, of this process
	Subscribed bool          // the waiter is subscribed to releases
	For        time.Duration // the maximum time until it tries again; zero: until it is its turn
	Err        error         // why it waits: a *ContentionError or a transport error; nil in the queue
}

// WakeReason says what ended a wait.
type WakeReason string

// What ends a wait.
const (
	ByRelease      WakeReason = "release"      // a release was published
	ByLeaseEnd     WakeReason = "lease end"    // the holder's lease ended
	ByBackoff      WakeReason = "backoff"      // the backoff ended
	BySubscription WakeReason = "subscription" // the subscription was (re)established
	ByTurn         WakeReason = "turn"         // the waiter became the head of its queue
	ByHandOver     WakeReason = "hand-over"    // the holder, of this process, handed the lock over to the waiter
)

// WokenInfo describes the end of a wait.
type WokenInfo struct {
	Name   string        // as of AttemptInfo
	Mode   string        // as of AttemptInfo
	By     WakeReason    // what ended the wait
	Waited time.Duration // in this wait
	From   string        // ByHandOver: the Owner of the released Lock
}

// AcquiredInfo describes a new Lock.
type AcquiredInfo struct {
	Source
	Name, Owner string        // those of the Lock
	Mode        string        // as of AttemptInfo
	TTL         time.Duration // the lease
	Deadline    time.Time     // when it ends by the local clock; zero: never
	Fence       int64         // the fencing token; zero: none
}

// RenewedInfo describes a renewal.
type RenewedInfo struct {
	Source
	Name     string        // as of AttemptInfo
	TTL      time.Duration // the new lease
	Deadline time.Time     // after the renewal
	Err      error         // nil: renewed
}

// ReleasedInfo describes a release.
type ReleasedInfo struct {
	Source
	Name string        // as of AttemptInfo
	Mode string        // as of AttemptInfo
	Held time.Duration // since the Lock was acquired
	// KeepUntil is until when Request.MinHold keeps the name taken; zero: it does not.
	KeepUntil time.Time
	Err       error // nil: released
}

// LostInfo describes the loss of a lock.
type LostInfo struct {
	Source
	Name string        // as of AttemptInfo
	Mode string        // as of AttemptInfo
	Held time.Duration // since the Lock was acquired
	Err  error         // matches locker.ErrLost
}

// NodeInfo describes a change of one node of a quorum.
type NodeInfo struct {
	Source                // Strategy is the quorum's; Client and Address are the node's, if known
	Node    int           // its index among the nodes of the quorum
	Name    string        // its name in the strategy's Config; "" if it has none
	Nodes   int           // how many nodes the quorum has
	Failing int           // how many fail now; NodeRecovered: without this one
	For     time.Duration // NodeRecovered: how long it failed
	Err     error         // NodeFailing: why; NodeRecovered: why it failed last
}

type traceKey struct{}

// With returns a copy of ctx whose acquires, and their Locks, report to t. They also report to the
// earlier Trace in ctx.
func With(ctx context.Context, t *Trace) context.Context {
	if old := From(ctx); old != nil && t != nil {
		t = &Trace{
			Attempt:  both(t.Attempt, old.Attempt),
			Waiting:  both(t.Waiting, old.Waiting),
			Woken:    both(t.Woken, old.Woken),
			Acquired: both(t.Acquired, old.Acquired),
			Renewed:  both(t.Renewed, old.Renewed),
			Released: both(t.Released, old.Released),
			Lost:     both(t.Lost, old.Lost),

			NodeFailing:   both(t.NodeFailing, old.NodeFailing),
			NodeRecovered: both(t.NodeRecovered, old.NodeRecovered),
		}
	}
	if t == nil {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, t)
}

// Without returns a copy of ctx without a Trace. It is for strategies made of other Lockers, whose
// Locks are not the caller's.
func Without(ctx context.Context) context.Context {
	if From(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, (*Trace)(nil))
}

// From returns the Trace in ctx, or nil. Strategies and middleware report to it.
func From(ctx context.Context) *Trace {
	t, _ := ctx.Value(traceKey{}).(*Trace)
	return t
}

func both[T any](first, then func(context.Context, T)) func(context.Context, T) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(ctx context.Context, info T) {
		first(ctx, info)
		then(ctx, info)
	}
}

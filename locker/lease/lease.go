package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// OpKind is a kind of operation on a Lease.
type OpKind uint8

// The operations of a Lease.
const (
	OpRenew      OpKind = iota + 1 // extend the lease to TTL from now, never shorten it
	OpRelease                      // end the hold
	OpConvert                      // change the hold to Mode
	OpRaiseFence                   // raise the fencing token to at least Fence, while the hold lasts
	// OpUndo undoes a failed attempt, and wakes nobody: it ends an acquired hold as OpRelease does,
	// and undoes a resume: the earlier Lock and its Handle work again. If a Lease does not support
	// it, an acquired hold is released instead, and a resumed one expires.
	OpUndo
	OpNote // replace the note of the hold by Note
)

// String returns the operation's name in errors.
func (k OpKind) String() string {
	switch k {
	case OpRenew:
		return "renew"
	case OpRelease:
		return "release"
	case OpConvert:
		return "convert"
	case OpRaiseFence:
		return "raise fence"
	case OpUndo:
		return "undo"
	case OpNote:
		return "note"
	default:
		return "unknown operation"
	}
}

// Op is one operation on a Lease. Fields of other Kinds are zero.
type Op struct {
	Kind  OpKind        // the operation
	TTL   time.Duration // OpRenew: the new lease
	Mode  Mode          // OpConvert: the new mode
	Fence int64         // OpRaiseFence: the minimum fencing token
	Note  string        // OpNote: the new note
	// Waiter, of OpRelease, is the Waiting.ID of this process if a waiter of it tries at once,
	// without a wake-up from the server. Empty: none does.
	Waiter string
	// ForWaiter, of OpRelease, leaves the lock to Waiter: nobody else is woken, unless the order of
	// waiters is strict. Without it the first waiter in the queue at the server is woken.
	ForWaiter bool
	// WaiterLeft, of OpRelease, removes the place of Waiter: nobody waits there any more.
	WaiterLeft bool
	// KeepUntil, of OpRelease, is the end of MinHold: the name stays taken until then. Zero: the
	// lock is free at once.
	KeepUntil time.Time
}

// Result is the result of an operation. After OpRenew a zero Deadline is a lease without end. A zero
// Fence is an unchanged fencing token.
type Result struct {
	Deadline time.Time // when the lease ends by the local clock
	Fence    int64     // the new fencing token
	// Alone, of OpRelease: nobody else waits at the server, or Op.Waiter is ahead of them.
	Alone bool
	// WokeOther, of OpRelease: a waiter other than Op.Waiter was woken.
	WokeOther bool
}

// Lease is a strategy's side of one hold. Do returns errors.ErrUnsupported for an unknown
// operation; a wrapper passes it on. ErrNotHeld says that the hold has ended, and ErrUnknownOutcome
// that the operation may or may not have been executed. Do may be called from several goroutines at
// once.
//
// A wrapper has a method Unwrap() Lease, so that [Find] finds the optional interfaces of the
// strategy's Lease.
type Lease interface {
	// Do executes op.
	Do(ctx context.Context, op Op) (Result, error)
}

// Sourced is implemented by a Lease, and by a Locker over one driver.
type Sourced interface {
	// Source returns the strategy, the client and the server.
	Source() locktrace.Source
}

// Leaver is a Locker whose waiters have places at the server.
type Leaver interface {
	// Leave removes the place id (Waiting.ID) in the queue of name: its waiters have all given up.
	// id is empty for shared waiters, which have no place. Leave wakes the waiters behind them. It
	// does not wait for the answer, and calls left after it: a waiter that has come meanwhile may
	// have lost its place.
	Leave(name, id string, left func())
}

// Queueing is a Locker whose requests wait in a queue of their process, such as middleware/retry.
// It is for middleware whose own requests wait behind one in the queue.
type Queueing interface {
	// GaveUp returns the error of a request for name: it waited since began, outside the queue, and
	// gave up because of why. The error names the last known holder or outage.
	GaveUp(name string, began time.Time, why error) error
}

// Reentrant is a Locker that may grant a held lock again to its owner (Request.Owner). Then a
// request does not queue behind those that wait for a lock of its own owner, and
// middleware/handover does not hand its locks over.
type Reentrant interface {
	// Reenters reports whether the Locker re-enters.
	Reenters() bool
}

// Served is implemented by a Lease whose hold is at one server.
type Served interface {
	Lease
	// Server returns driver.Driver.Server for the lock's key.
	Server() any
}

// Tokened is implemented by a strategy's Lease if its token changes during the hold: Lock.Handle
// uses Token in place of HoldInfo.Token. A quorum's token consists of those of its nodes, which come
// and go. A wrapper's Token is not used.
type Tokened interface {
	Lease
	// Token returns the present token of the hold.
	Token() string
}

// Explained is implemented by a Lease that stands for another Lock.
type Explained interface {
	Lease
	// Loss returns the *locker.LostError of the other Lock, or nil if none is known. At its Deadline
	// the Lock of this Lease ends with this error.
	Loss() error
}

// Counted is implemented by a Lease or a Locker that may be a semaphore's. A name of a semaphore
// can have several exclusive holds at a time.
type Counted interface {
	// Permits returns the limit of the semaphore; 0 if it is not a semaphore.
	Permits() int
}

// maxWrapped is the number of Leases that Find looks at, at most.
const maxWrapped = 1000

// Find returns the first T among l and the Leases in it. It ends after 1,000 Leases, in case one
// wraps itself.
func Find[T any](l Lease) (found T, ok bool) {
	for range maxWrapped {
		if found, ok = l.(T); ok {
			return found, true
		}
		wrapper, wraps := l.(interface{ Unwrap() Lease })
		if !wraps {
			break
		}
		l = wrapper.Unwrap()
	}
	return found, false
}

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
// A Lease may have these methods too:
//
//   - Unwrap() Lease, of a wrapper, returns the Lease in it. [Find] and [TraitsOf] follow it.
//   - Traits() Traits returns what the Lease is: see [Traits].
//   - Token() string returns the present token of the hold, if it changes during the hold:
//     Lock.Handle uses it in place of HoldInfo.Token. A quorum's token consists of those of its
//     nodes, which come and go.
//   - Server() any returns driver.Driver.Server for the lock's key, if the hold is at one server.
//     strategies/watchdog bounds the renewals in flight at each server.
//   - Loss() error returns the loss of the Lock in the wrapped Locker, for a Lease that acts on
//     such a Lock, or nil if none is known. If the Deadline passes, the Lock of the Lease ends with
//     this error.
type Lease interface {
	// Do executes op.
	Do(ctx context.Context, op Op) (Result, error)
}

// Traits say what a Locker or a Lease is. The zero Traits are those of a lock that is held once at a
// time. A strategy's Locker has a method Traits() Traits; its Leases may have one too.
type Traits struct {
	// Source is the strategy, the client and the server, for traces.
	Source locktrace.Source
	// Permits is the limit of a semaphore. A name of a semaphore can have several exclusive holds at
	// a time. 0: it is no semaphore.
	Permits int
	// Reentrant, of a Locker: it may grant a held lock again to its owner (Request.Owner). Then a
	// request does not queue behind those that wait for a lock of its own owner, and
	// middleware/handover does not hand its locks over.
	Reentrant bool
	// Ordered, of a Locker: it orders waiting shared and exclusive requests itself, across processes.
	// Middleware then does not make one wait for the other.
	Ordered bool
	// Queue, of a Locker: waiters can have places in a queue at the server (Hint.Queue).
	Queue bool
}

// TraitsOf returns the Traits of the first among w and those in it that has them. W is
// locker.Locker or Lease, as for [Find].
func TraitsOf[W any](w W) Traits {
	if found, ok := Find[interface{ Traits() Traits }](w); ok {
		return found.Traits()
	}
	return Traits{}
}

// Leaver is a Locker whose waiters have places at the server.
type Leaver interface {
	// Leave removes the place id (Waiting.ID) in the queue of name after its last waiter gave up,
	// and wakes the waiters behind it. id is empty for shared waiters: they have no place. Leave
	// does not wait for the answer. It calls left after the answer, unless the driver is closed: a
	// waiter that entered meanwhile may have lost its place.
	Leave(name, id string, left func())
}

// maxWrapped is the maximum number of values that Find looks at.
const maxWrapped = 1000

// Find returns the first T among w and those in it. W is locker.Locker or Lease: what wraps another
// one has a method Unwrap() W, as all of middleware/... and strategies/watchdog do. A locker.Func
// hides the Locker in it. Find ends after 1,000 values, in case one wraps itself.
func Find[T, W any](w W) (found T, ok bool) {
	for range maxWrapped {
		if found, ok = any(w).(T); ok {
			return found, true
		}
		wrapper, wraps := any(w).(interface{ Unwrap() W })
		if !wraps {
			break
		}
		w = wrapper.Unwrap()
	}
	return found, false
}

package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// OpKind says what a Lock asks of its Lease.
type OpKind uint8

// The operations of a Lease.
const (
	OpRenew      OpKind = iota + 1 // extend the lease to TTL from now, never shorten it
	OpRelease                      // end the hold
	OpConvert                      // change the hold to Mode
	OpRaiseFence                   // raise the fencing token to at least Fence, while the hold lasts
	// OpUndo undoes a failed attempt, and wakes nobody: it ends an acquired hold as OpRelease
	// does, and undoes a resume, so that the Lock and the Handle it was taken from work again. If a
	// Lease does not support it, an acquired hold is released instead, and a resumed one expires.
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

// Op is one operation on a Lease. Fields that its Kind does not name are zero.
type Op struct {
	Kind  OpKind        // which operation
	TTL   time.Duration // OpRenew: the new lease
	Mode  Mode          // OpConvert: the new mode
	Fence int64         // OpRaiseFence: the least that the fencing token is to be
	Note  string        // OpNote: the new note
	// Waiter, of OpRelease, is the Waiting.ID of this process if it has a waiter that tries at
	// once, without a wake-up from the server. Empty: it has none.
	Waiter string
	Next   Next // OpRelease: who is to try next
	// KeepUntil, of OpRelease, is the time until which the name stays taken although the hold ends.
	// Zero: the lock is free at once.
	KeepUntil time.Time
}

// Next is who is to try next after a release.
type Next string

// The values of Next.
const (
	NextFirst Next = ""      // the first waiter in the queue at the server, which is woken
	NextOwn   Next = "keep"  // Op.Waiter; nobody else is woken, unless the order of waiters is strict
	NextOther Next = "leave" // the first waiter; the place of Op.Waiter is removed, nobody waits there
)

// Term is the result of an operation. After OpRenew a zero Deadline means that the lease never
// ends; a zero Fence, that the fencing token is unchanged.
type Term struct {
	Deadline time.Time // when the lease ends by the local clock
	Fence    int64     // the new fencing token
	Others   Others    // OpRelease: what it found out about other waiters
}

// Others is what a release found out about the waiters in the queue at the server, other than
// Op.Waiter.
type Others int

// The values of Others.
const (
	OthersUnknown Others = iota // nothing
	OthersNone                  // nobody else waits, or Op.Waiter is ahead of them
	OthersWoken                 // one of them has been woken
)

// Lease is a strategy's side of one hold. Do answers an operation it does not know with
// errors.ErrUnsupported; a wrapper passes on what it does not know. An error that matches
// ErrNotHeld says that the hold has ended; one that matches ErrUnknownOutcome, that it is unknown
// whether the operation was executed. Do may be called from several goroutines at once.
//
// A wrapper has a method Unwrap() Lease, so that what else the strategy's Lease can do is found
// ([Tokened]).
type Lease interface {
	// Do executes op.
	Do(ctx context.Context, op Op) (Term, error)
}

// Sourced is implemented by a Lease, and by a Locker over one driver, that knows where it comes
// from.
type Sourced interface {
	// Source returns the strategy, the client and the server.
	Source() locktrace.Source
}

// Leaver is a Locker whose waiters have places at the server.
type Leaver interface {
	// Leave removes the place of the waiters of name whose Waiting.ID is id: all of them have given
	// up. id is empty for shared waiters, which have no place. It wakes those that they kept from
	// the lock. It does not wait for the answer, and calls left after it: a waiter that has come
	// meanwhile may have lost its place.
	Leave(name, id string, left func())
}

// Queueing is a Locker whose requests wait in a queue of their process, such as middleware/retry.
// It is for middleware whose requests wait behind one that is in the queue.
type Queueing interface {
	// GaveUp returns the error of a request for name that waited since began, outside the queue, and
	// gave up because of why. It says what the queue knows of the holder, or of an outage.
	GaveUp(name string, began time.Time, why error) error
}

// Reentrant is a Locker that may grant a lock again to the owner that holds it (Request.Owner). Then a
// request does not wait in a queue behind requests that wait for its own owner, and middleware/handover
// does not hand its locks over.
type Reentrant interface {
	// Reenters reports whether the Locker does so.
	Reenters() bool
}

// Served is implemented by a Lease whose hold is at one server.
type Served interface {
	Lease
	// Server returns what stands for that server now: see driver.Driver.
	Server() any
}

// Tokened is implemented by a Lease whose token changes while it is held: Lock.Handle asks for it
// in place of the Grant's. A quorum's token is made of those of its nodes, which come and go.
type Tokened interface {
	Lease
	// Token returns the token by which the hold is known now.
	Token() string
}

// Explained is implemented by a Lease that stands for another Lock, and knows how that was lost.
type Explained interface {
	Lease
	// Loss returns the *locker.LostError of the other Lock, with which the Lock of this Lease ends
	// too if its lease has run out. nil: none is known.
	Loss() error
}

// Counted is implemented by a Lease, and by a Locker, that may be a semaphore's. A name of a
// semaphore can have several exclusive holds at a time.
type Counted interface {
	// Permits returns the limit of the semaphore; 0 if it is not a semaphore.
	Permits() int
}

// maxWrapped is how many Leases Find looks at.
const maxWrapped = 1000

// Find returns the first T among l and what it wraps. It looks no further than 1,000 Leases, so
// that it ends if one of them wraps itself.
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

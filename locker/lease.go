package locker

import (
	"context"
	"time"
)

// Grant is what a strategy won: the facts of one hold.
type Grant struct {
	Name  string
	Owner string // empty: the Lock makes a random one when it is asked
	// Token identifies the hold at the server; whoever knows it can release the lock. No printing,
	// logging or JSON shows it, with one exception: do not keep a Grant in an unexported field,
	// because fmt would print the token there.
	Token string `json:"-"`
	Mode  Mode
	TTL   time.Duration
	// Deadline is when the lease ends by the local clock. Zero: never.
	Deadline time.Time
	Fence    int64 // zero: none
}

// OpKind says what a Lock asks of its Lease.
type OpKind uint8

// The operations of a Lease.
const (
	OpRenew      OpKind = iota + 1 // extend the lease to TTL from now, never shorten it
	OpRelease                      // end the hold
	OpConvert                      // change the hold to Mode
	OpRaiseFence                   // set the tenure's fencing token to at least Fence, only while the token holds
	// OpGiveBack undoes a failed attempt, and wakes nobody: it ends an acquired hold as OpRelease
	// does, and undoes a resume, so that the Lock and the Handle it was taken from work again. If a
	// Lease does not support it, an acquired hold is released instead, and a resumed one expires.
	OpGiveBack
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
	case OpGiveBack:
		return "give back"
	default:
		return "unknown operation"
	}
}

// Op is one operation on a Lease. Fields that its Kind does not name are zero.
type Op struct {
	Kind  OpKind
	TTL   time.Duration // OpRenew
	Mode  Mode          // OpConvert
	Fence int64         // OpRaiseFence
}

// noun is the operation in errors: "the renewal".
func (o Op) noun() string {
	switch {
	case o.Kind == OpRenew:
		return "renewal"
	case o.Kind == OpConvert && o.Mode == Shared:
		return "downgrade"
	case o.Kind == OpConvert:
		return "upgrade"
	default:
		return o.Kind.String()
	}
}

// Term is the result of an operation. After OpRenew a zero Deadline means that the lease never
// ends; a zero Fence, that the fencing token is unchanged.
type Term struct {
	Deadline time.Time
	Fence    int64
}

// Lease is a strategy's side of one hold. Do answers an operation it does not know with
// errors.ErrUnsupported; a wrapper passes on what it does not know. An error that matches
// ErrNotHeld says that the hold has ended; one that matches ErrUnknownOutcome, that it is unknown
// whether the operation was executed. Do may be called from several goroutines at once.
//
// A wrapper that leaves renewals alone has a method Unwrap() Lease, so that they can travel
// together (see [Batched]) and what else the strategy's Lease can do is found ([Tokened]).
type Lease interface {
	Do(ctx context.Context, op Op) (Term, error)
}

// Sourced is implemented by a Lease that can tell its traces where it comes from, and by a Locker
// over one driver.
type Sourced interface {
	Source() Source
}

// Tokened is implemented by a Lease whose token changes while it is held: [Lock.Handle] asks for it
// in place of the Grant's. A quorum's token is made of those of its nodes, which come and go.
type Tokened interface {
	Lease
	Token() string
}

// behind finds a T among lease and what it wraps.
func behind[T Lease](lease Lease) (found T, ok bool) {
	for {
		if found, ok = lease.(T); ok {
			return found, true
		}
		wrapper, wraps := lease.(interface{ Unwrap() Lease })
		if !wraps {
			return found, false
		}
		lease = wrapper.Unwrap()
	}
}

// NewLock makes the Lock of a hold just won, and reports Acquired to the Trace in ctx. Nothing else
// of ctx is kept.
func NewLock(ctx context.Context, g Grant, l Lease) *Lock {
	made := &struct { // one allocation for both
		lock   Lock
		hidden hidden
	}{hidden: hidden{g.Token, l, l}}
	g.Token = ""
	lock := &made.lock
	lock.grant, lock.deadline = g, g.Deadline
	lock.hidden.Store(&made.hidden)
	if t := TraceFrom(ctx); t != nil {
		lock.traced(ctx, t)
	}
	return lock
}

// WrapLease puts wrap around lock's Lease. It is for middleware, before the lock is handed over: by
// one goroutine at a time.
func WrapLease(lock *Lock, wrap func(Lease) Lease) {
	wrapped := wrap(lock.current()) // without the mutex: wrap may ask the lock
	if !lock.valid() {
		return
	}
	lock.mu.Lock()
	defer lock.mu.Unlock()
	lock.hidden.Load().lease = wrapped
}

func (l *Lock) current() Lease {
	if !l.valid() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden.Load().lease
}

// ExplainEnd records why nothing extends lock's lease any more: if the lease runs out, Err matches
// ErrLost and cause. ExplainEnd itself does not end the lock.
func ExplainEnd(lock *Lock, cause error) {
	if !lock.valid() {
		return
	}
	lock.mu.Lock()
	defer lock.mu.Unlock()
	lock.cause = cause
}

// MarkLost ends lock with an error that matches ErrLost and cause, unless it ended before. It sends
// nothing.
func MarkLost(lock *Lock, cause error) {
	if !lock.valid() {
		return
	}
	lock.mu.Lock()
	ended := lock.lose(lock.lost("", cause))
	lock.mu.Unlock()
	lock.report(ended)
}

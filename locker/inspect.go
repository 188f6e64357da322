package locker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// State is the state of a name at the server, at the moment of asking.
type State struct {
	// Held reports whether the name is taken.
	Held bool
	// Owner and Note are the holder's. They are empty unless the stored value has exactly our form.
	Owner, Note string
	// Mode is how the lock is held.
	Mode Mode
	// Holds is the number of live holds. If it is 0 and Held is set, the holder has released the
	// lock, and its Request.MinHold keeps the name taken for Left.
	Holds int
	// Left is the time until the lease ends unless it is renewed. Zero: it never ends, or the time
	// is unknown.
	Left time.Duration
	// Permits is the limit of a semaphore, and Free is how many of its permits are free. If
	// Permits is 0, the strategy is not a semaphore.
	Permits, Free int
	// Fence is the holder's fencing token, or zero if there is none. single and rwhash return the
	// last token minted for the name: an earlier holder's if this one asked for none. A semaphore
	// returns zero. In a quorum the token may be higher than the holder's, since a later node mints
	// one too.
	Fence int64
	// Waiters is the number of processes with a place in the queue at the server. It is 1 if only
	// waiters without a place wait: readers of rwhash, requests without middleware/retry, waiters
	// in a quorum. A dead or cancelled waiter may count for 5 s after its last attempt, and longer
	// in a long queue. Waiters is -1 if the server does not let the queue be read, and 0 if the
	// strategy has none.
	Waiters int
}

// Inspector is implemented by strategies that keep state in Redis. [Inspect] finds it behind
// middleware.
type Inspector interface {
	// Inspect returns the State of name.
	Inspect(ctx context.Context, name string) (State, error)
}

// Inspect returns the State of name, from the first [Inspector] among l and the Lockers in it. The
// answer may be outdated by the time it is read: it is for people and tests, not for deciding who
// may write.
//
// Errors, in an [OpError]: ErrInvalid, errors.ErrUnsupported if there is no Inspector, the
// client's.
func Inspect(ctx context.Context, l Locker, name string) (State, error) {
	if err := cmp.Or(validateCall(ctx, l, "Inspect"), validateName(name)); err != nil {
		return State{}, opError("inspect", name, err)
	}
	in, ok := lease.Find[Inspector](l)
	if !ok {
		return State{}, opError("inspect", name, errors.ErrUnsupported)
	}
	state, err := in.Inspect(ctx, name)
	return state, opError("inspect", name, err)
}

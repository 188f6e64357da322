package locker

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// breaker is a strategy that can end a hold by its name: docs/writing-a-strategy.md.
type breaker interface {
	FindHolds(ctx context.Context, name string) (State, func(context.Context) error, error)
}

// Break ends the hold of name, whoever has it, and returns its State. It is for operators: to end
// the hold of a frozen or unreachable process before its lease ends.
//
// It ends all holds that exist when it begins: the writer or all readers of strategies/rwhash, all
// permits of strategies/semaphore, the hold of another library, and also a Request.MinHold after a
// release. It never ends a later hold, even if its command is executed late. For a hold of another
// library it sends one command only: a later hold may have the same value there, and a late
// execution would end that.
//
// In a quorum it ends the holds on every node that answers. If the holder renews while Break runs,
// it may restore them and keep the lock, although Break returns nil. So call [Inspect] afterwards,
// and Break again while the same holder has the lock.
//
// Waiters are woken as by a release. The holder is not notified: its Lock is lost at its next
// renewal, and until then, or until its Deadline, its process may continue. So use Break only if
// the holder no longer works, or if fencing tokens protect the data. Every later holder has a
// fencing token higher than the returned State.Fence. The exception is an owner of
// strategies/reentrant that enters again before its last hold is ended: it keeps its token. Give
// State.Fence+1 to a store at once, and it refuses the old holder from then on.
//
// Break finds the holds, and then ends each by its token. A hold whose token SetNote or Resume
// replaces in between counts as a later one and stays, even if Break returns nil or ErrNotHeld.
// [Inspect] shows it, and another Break ends it.
//
// ctx bounds the call. If Break fails, it may have ended some of the holds; it can be called again.
//
// Errors, in an [OpError]: ErrNotHeld (nobody holds name, or no hold had its token any more),
// ErrUnknownOutcome (the attempt to end the hold continues in the background, unless it is another
// library's), ErrInvalid, errors.ErrUnsupported if no strategy among l and the Lockers in it can, the
// client's.
func Break(ctx context.Context, l Locker, name string) (State, error) {
	state, err := breakHolds(ctx, l, name)
	if err != nil {
		return State{}, opError("break", name, err)
	}
	return state, nil
}

func breakHolds(ctx context.Context, l Locker, name string) (State, error) {
	if err := cmp.Or(validateCall(ctx, l, "Break"), validateName(name)); err != nil {
		return State{}, err
	}
	b, ok := lease.Find[breaker](l)
	if !ok {
		return State{}, errors.ErrUnsupported
	}
	state, end, err := b.FindHolds(ctx, name)
	switch {
	case err != nil:
		return State{}, err
	case end == nil:
		return State{}, ErrNotHeld
	}
	return state, end(ctx)
}

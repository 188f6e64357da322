package handover

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// heldLease is the Lease of one Lock of a tenure. Until its Lock is released, it acts on the wrapped
// Locker's Lock.
type heldLease struct {
	tenure   *tenure
	hold     lease.Hold // its Lock
	released bool       // its Lock was released
}

// renewalResult is the result of a renewal of the wrapped Locker's Lock. The ctx of a renewal of the
// holder's Lock carries it, to report it there.
type renewalResult struct {
	deadline time.Time
	err      error
}

type renewedKey struct{}

// Do implements lease.Lease.
func (l *heldLease) Do(ctx context.Context, op lease.Op) (result lease.Result, err error) {
	if op.Kind == lease.OpRenew {
		if r, ok := ctx.Value(renewedKey{}).(*renewalResult); ok {
			return lease.Result{Deadline: r.deadline}, r.err
		}
	}
	var lock *locker.Lock
	switch op.Kind {
	case lease.OpRenew, lease.OpNote, lease.OpRelease: // the hold stays as it is
		lock = l.wrappedLock()
	default:
		lock = l.endHandOvers()
	}
	switch {
	case lock == nil:
		return result, locker.ErrReleased
	case op.Kind == lease.OpRelease:
		return result, l.release(ctx)
	case op.Kind == lease.OpRenew:
		l.tenure.holderRenewals.Add(1)
		defer l.tenure.holderRenewals.Add(-1)
		err = lock.Renew(ctx, op.TTL)
	case op.Kind == lease.OpNote:
		err = l.setNote(ctx, lock, op.Note)
	case op.Kind == lease.OpConvert && op.Mode == locker.Shared:
		err = lock.Downgrade(ctx)
		result.Fence = lock.Fence()
	case op.Kind == lease.OpConvert:
		err = lock.Upgrade(ctx)
		result.Fence = lock.Fence()
	case op.Kind == lease.OpUndo:
		defer l.tenure.undone()
		return lock.Hold().Lease().Do(ctx, op)
	default:
		return lock.Hold().Lease().Do(ctx, op)
	}
	result.Deadline = lock.Deadline()
	return result, bare(err)
}

// wrappedLock returns the wrapped Locker's Lock, or nil if l's Lock was released or forgotten.
func (l *heldLease) wrappedLock() *locker.Lock {
	mu := &l.tenure.line.cohort.mu
	mu.Lock()
	defer mu.Unlock()
	if l.released {
		return nil
	}
	return l.tenure.lock
}

// endHandOvers is wrappedLock for an operation that changes the hold or names it to others: the
// hold is not handed over any more.
func (l *heldLease) endHandOvers() *locker.Lock {
	mu := &l.tenure.line.cohort.mu
	mu.Lock()
	defer mu.Unlock()
	if l.released {
		return nil
	}
	l.tenure.noHandOver = true
	return l.tenure.lock
}

// setNote changes the note of lock, the wrapped Locker's, and then what the line knows of it, unless
// the hold was handed over meanwhile.
func (l *heldLease) setNote(ctx context.Context, lock *locker.Lock, note string) error {
	err := lock.SetNote(ctx, note)
	t := l.tenure
	t.line.cohort.mu.Lock()
	defer t.line.cohort.mu.Unlock()
	if err == nil && t.holder == l.hold {
		t.note = note
	}
	return err
}

// release hands the hold over, or sends the release.
func (l *heldLease) release(ctx context.Context) (err error) {
	handed := false
	defer func() { // even if the Lease panics in reserve
		if !handed {
			err = l.tenure.release(ctx)
		}
	}()
	handed = l.handOver(ctx)
	return nil
}

// handOver hands the hold over, and reports whether it did. It sends a command only to reserve fencing
// tokens.
func (l *heldLease) handOver(ctx context.Context) bool {
	t, released := l.tenure, l.hold.Err() == locker.ErrReleased //nolint:errorlint // set by Release itself
	result := notHanded
	t.line.cohort.mu.Lock()
	if l.released = true; released {
		result = t.handOn(l.hold, time.Now())
	}
	t.line.cohort.mu.Unlock()
	return result == handed || result == needsTokens && t.reserve(ctx, l.hold)
}

// Unwrap returns the Lease of the wrapped Locker's Lock.
func (l *heldLease) Unwrap() lease.Lease { return l.tenure.hold.Lease() }

// Token returns the token: see lease.Lease. It ends the hand-overs: a process with the token may resume
// the hold. After l's Lock was released, the token is random and names no hold.
func (l *heldLease) Token() string {
	lock := l.endHandOvers()
	if lock == nil {
		return lease.NewToken()
	}
	return lock.Handle().Info().Token
}

// Loss returns the loss of the wrapped Locker's Lock: see lease.Lease.
func (l *heldLease) Loss() error {
	if err := l.tenure.hold.Err(); errors.Is(err, locker.ErrLost) {
		return err
	}
	return nil
}

// bare takes err out of the OpError and LostError of the wrapped Locker's Lock. The holder's Lock adds
// its own.
func bare(err error) error {
	if op, ok := errors.AsType[*locker.OpError](err); ok {
		err = op.Err
	}
	if lost, ok := err.(*locker.LostError); ok && errors.Is(lost.Err, locker.ErrNotHeld) { //nolint:errorlint // a wrapper says more
		return lost.Err
	}
	return err
}

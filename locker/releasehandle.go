package locker

import (
	"cmp"
	"context"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// handleReleaser is a strategy that releases a hold by its Handle in one step:
// docs/writing-a-strategy.md.
type handleReleaser interface {
	ReleaseHandle(ctx context.Context, h Handle) error
}

// Release releases the hold of h without its Lock. It is for programs that acquire in one
// process and release in another. The other gets the Handle as text ([Handle.Encode]). If the first
// process still has the Lock, it loses it at the next renewal, and the Lock's Context ends then.
//
// If the hold has a MinHold, the name stays taken, from this call on, for as long as was left of
// MinHold when the Handle was made.
//
// The strategy in l releases the hold in one round trip; middleware around it does not observe the
// release. If it cannot, as strategies/redlock, Release resumes the hold and releases it. As with [Lock.Release], a cancelled ctx does not
// stop the release, but it does stop the resume.
//
// Errors, in an [OpError]: ErrNotHeld (the hold has ended, or was resumed by another caller),
// ErrUnknownOutcome (the lock is free at its TTL at the latest), ErrInvalid, the client's.
func (h Handle) Release(ctx context.Context, l Locker) error {
	if err := cmp.Or(validateCall(ctx, l, "Handle.Release"), h.validate("Handle.Release")); err != nil {
		return opError("release", h.Name(), err)
	}
	if r, ok := lease.Find[handleReleaser](l); ok {
		return opError("release", h.Name(), r.ReleaseHandle(ctx, h))
	}
	lock, err := Resume(ctx, l, h)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

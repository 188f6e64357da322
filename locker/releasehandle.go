package locker

import (
	"context"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// HandleReleaser is implemented by strategies that release a hold by its Handle in one step.
// [ReleaseHandle] finds it behind middleware.
type HandleReleaser interface {
	ReleaseHandle(ctx context.Context, h Handle) error
}

// ReleaseHandle ends the hold that h names, for a program that has no Lock of it: a service that
// releases in another process than the one that acquired, by the text of [Handle.Encode]. The Lock of
// the hold, if there still is one, is lost at its next renewal, and its ctx ends then.
//
// A MinHold counts from here, for as long as was left of it when the Handle was made.
//
// The first [HandleReleaser] among l and the Lockers that it wraps does it in one round trip;
// middleware between them does not observe it. A Locker without one, such as strategies/redlock,
// resumes the hold and releases it. As with [Lock.Release], a cancelled ctx does not stop it, except
// for a resume.
//
// Errors, in an [OpError]: ErrNotHeld (the hold has ended, or was resumed by another),
// ErrUnknownOutcome (the lock frees itself at its TTL at the latest), ErrInvalid, the client's.
func ReleaseHandle(ctx context.Context, l Locker, h Handle) error {
	switch {
	case ctx == nil:
		return opError("release", h.Name(), driver.NilContext("ReleaseHandle ctx"))
	case l == nil:
		return opError("release", h.Name(), driver.Invalid("ReleaseHandle locker", "nil", "a Locker"))
	case h.IsZero():
		return opError("release", "", driver.Invalid("ReleaseHandle handle", "the zero Handle", "a Handle of a held Lock"))
	}
	if r, ok := As[HandleReleaser](l); ok {
		return opError("release", h.Name(), r.ReleaseHandle(ctx, h))
	}
	lock, err := Resume(ctx, l, h)
	if err != nil {
		return err
	}
	return lock.Release(ctx)
}

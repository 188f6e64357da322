package keylock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// ReleaseHandle implements locker.HandleReleaser with one script, which is resent as that of
// Lock.Release is. If a resend finds no hold, an earlier send released it.
func (l *Locker) ReleaseHandle(ctx context.Context, h locker.Handle) error {
	if err := l.releaseHandle(ctx, h); err != nil {
		return &locker.OpError{Op: "release", Name: h.Name(), Err: err}
	}
	return nil
}

func (l *Locker) releaseHandle(ctx context.Context, handle locker.Handle) error {
	if err := checkContext(ctx); err != nil {
		return err
	}
	g := handle.Grant()
	key, err := l.check(uncancelled(ctx), locker.Request{Name: g.Name, Mode: g.Mode, Resume: handle})
	if err != nil {
		return err
	}
	h := &keyHold{l: l, name: g.Name, key: key, value: g.Token, owner: g.Owner, shared: g.Mode == locker.Shared, ttl: l.cfg.ttl(g.TTL)}
	h.timeout = l.cfg.attemptTimeout(h.ttl)
	h.extend(time.Now().Add(h.ttl)) // unknown; the outcome of a resend depends on it
	op := lease.Op{Kind: lease.OpRelease}
	if g.MinHold > 0 {
		op.KeepUntil = time.Now().Add(g.MinHold)
	}
	_, err = h.Do(ctx, op)
	if errors.Is(err, locker.ErrLost) {
		return locker.ErrNotHeld // nobody held a Lock here that could be lost
	}
	return err
}

package keylock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/argument"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// ReleaseHandle is for [locker.Handle.Release]. It sends one script, resent as for Lock.Release. If a
// resend finds no hold, an earlier send released it.
func (l *Locker) ReleaseHandle(ctx context.Context, h locker.Handle) error {
	return opError("release", h.Name(), l.releaseHandle(ctx, h))
}

func (l *Locker) releaseHandle(ctx context.Context, handle locker.Handle) error {
	if ctx == nil {
		return argument.NilContext("ReleaseHandle ctx")
	}
	g := handle.Info()
	_, err := l.check(uncancelled(ctx), locker.Request{Name: g.Name, Mode: g.Mode, Resume: handle})
	if err != nil {
		return err
	}
	op := lease.Op{Kind: lease.OpRelease}
	if g.MinHold > 0 {
		op.KeepUntil = time.Now().Add(g.MinHold)
	}
	_, err = l.foundHold(g.Name, g.Token, g.TTL).Do(ctx, op)
	if errors.Is(err, locker.ErrLost) {
		return locker.ErrNotHeld // no Lock here could be lost
	}
	return err
}

// foundHold returns the hold with that value. Another Lock may have it.
func (l *Locker) foundHold(name, value string, ttl time.Duration) *keyHold {
	ttl = l.cfg.ttl(ttl)
	h := &keyHold{l: l, key: l.cfg.Prefix + name, acquired: value, value: value, ttl: ttl,
		timeout: l.cfg.attemptTimeout(ttl)}
	h.extend(time.Now().Add(ttl)) // unknown; the outcome of a resend depends on it
	return h
}

package locker

import (
	"context"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// Context returns a copy of parent that ends when the lock ends. Its cause (context.Cause) is what
// Err returns then. It carries the lock's owner for this name, so that a reentrant lock is
// re-entered with it, and what middleware adds, such as the span of the hold.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if dress := l.dresser(); dress != nil {
		parent = dress(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	if l.valid() {
		ctx = lease.WithOwner(ctx, l.Name(), l.Owner())
	}
	stop := l.afterDone(&afterDone{func(err error) { cancel(err) }, true})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

func (l *Lock) dresser() func(context.Context) context.Context {
	if !l.valid() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dress
}

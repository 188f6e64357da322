package locker

import "context"

// Context returns a copy of parent that ends when the lock does, with what Err says as its cause (context.Cause). It
// carries the lock's owner for this name, so that a reentrant lock is re-entered under it, and what middleware adds, such as
// the span of the hold.
func (l *Lock) Context(parent context.Context) (context.Context, context.CancelFunc) {
	if dress := l.dresser(); dress != nil {
		parent = dress(parent)
	}
	ctx, cancel := context.WithCancelCause(parent)
	if l.valid() {
		ctx = withNameOwner(ctx, l.Name(), l.Owner())
	}
	stop := l.afterDone(&afterDone{func(err error) { cancel(err) }, true})
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// WrapContext makes [Lock.Context], and so [Do], pass the parent through wrap, which adds values to it. It is for middleware,
// before the lock is handed over: what wraps first is overruled by what wraps later.
func WrapContext(lock *Lock, wrap func(context.Context) context.Context) {
	if !lock.valid() {
		return
	}
	lock.mu.Lock()
	defer lock.mu.Unlock()
	inner := lock.dress
	if inner == nil {
		lock.dress = wrap
		return
	}
	lock.dress = func(ctx context.Context) context.Context { return wrap(inner(ctx)) }
}

func (l *Lock) dresser() func(context.Context) context.Context {
	if !l.valid() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dress
}

package locker

import (
	"context"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// Downgrade turns an exclusive hold into a shared one, without a moment in which it is neither.
//
// Conversions of one Lock are done one at a time.
//
// Nobody may rely on the exclusive hold from the call on. Errors: ErrLost, ErrReleased, ErrUnknownOutcome (Mode is Shared
// from then on, though others may be kept out; Downgrade again tells them), errors.ErrUnsupported, the client's.
func (l *Lock) Downgrade(ctx context.Context) error {
	return l.convert(ctx, "downgrade", Shared)
}

// Upgrade turns a shared hold into an exclusive one, or fails at once where there are other holders: it stays shared then.
//
// Errors: a *ContentionError that says who else holds, and those of Downgrade; whatever they are, Mode stays Shared.
func (l *Lock) Upgrade(ctx context.Context) error {
	return l.convert(ctx, "upgrade", Exclusive)
}

// convert runs one conversion at a time: answers that came in another order than the server gave them would leave the Lock
// in a mode that it has not.
func (l *Lock) convert(ctx context.Context, name string, to Mode) error {
	if ctx != nil && l.valid() {
		done, err := l.alone(ctx)
		if err != nil {
			return opError(name, l.Name(), err)
		}
		defer done()
	}
	ended, err := l.do(ctx, name, lease.Op{Kind: lease.OpConvert, Mode: to}, nil)
	l.report(ended)
	return err
}

// alone waits until no conversion is under way, and lets none begin until done.
func (l *Lock) alone(ctx context.Context) (done func(), err error) {
	for {
		l.mu.Lock()
		before := l.converts
		if before == nil {
			mine := make(chan struct{})
			l.converts = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				l.converts = nil
				l.mu.Unlock()
				close(mine)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

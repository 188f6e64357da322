package locker

import (
	"context"

	"github.com/holdfast-go/holdfast/locker/lease"
)

// Downgrade is Lock.Downgrade.
func (l *lockState) Downgrade(ctx context.Context) error {
	return l.convert(ctx, "downgrade", Shared)
}

// Upgrade is Lock.Upgrade.
func (l *lockState) Upgrade(ctx context.Context) error {
	return l.convert(ctx, "upgrade", Exclusive)
}

// convert runs one conversion at a time. If replies arrived in another order than the server
// executed the commands, the Lock would be left in the wrong mode.
func (l *lockState) convert(ctx context.Context, name string, to Mode) error {
	if ctx != nil && l.valid() {
		done, err := l.beginConversion(ctx)
		if err != nil {
			return opError(name, l.Name(), err)
		}
		defer done()
	}
	return l.do(ctx, name, lease.Op{Kind: lease.OpConvert, Mode: to}, nil, false)
}

// beginConversion waits until no conversion and no SetNote of the lock is in flight. None begins
// until done is called.
func (l *lockState) beginConversion(ctx context.Context) (done func(), err error) {
	for {
		l.mu.Lock()
		extra := l.extras()
		before := extra.converts
		if before == nil {
			mine := make(chan struct{})
			extra.converts = mine
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				extra.converts = nil
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

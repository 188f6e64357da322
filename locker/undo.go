package locker

import (
	"context"
	"time"
)

// undoGrace is how long a failed AcquireAll waits for its releases after ctx or MaxWait has ended.
const undoGrace = 250 * time.Millisecond

// undo releases the locks of a failed AcquireAll.
type undo struct {
	ctx     context.Context //nolint:containedctx // the call's, which ends with MaxWait too
	until   time.Time       // when the call returns all the same; zero: ctx has not ended
	running []<-chan struct{}
}

// release releases locks. It waits for the answers until ctx ends, and undoGrace longer. done
// reports whether all are released.
func (u *undo) release(held []*Lock) (done bool) {
	if len(held) == 0 {
		return true
	}
	locks := &Locks{held: append([]*Lock(nil), held...)}
	for _, lock := range locks.held {
		lock.DropMinHold()
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		_ = locks.Release(u.ctx)
	}()
	select {
	case <-released:
		return true
	case <-u.ctx.Done():
	}
	if u.until.IsZero() {
		u.until = time.Now().Add(undoGrace)
	}
	grace := time.NewTimer(time.Until(u.until))
	defer grace.Stop()
	select {
	case <-released:
		return true
	case <-grace.C:
		u.running = append(u.running, released)
		return false
	}
}

// whenReleased calls f once everything is released.
func (u *undo) whenReleased(f func()) {
	if len(u.running) == 0 {
		f()
		return
	}
	go func() {
		for _, released := range u.running {
			<-released
		}
		f()
	}()
}

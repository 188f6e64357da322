package locker

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// NewLock returns the Lock of a hold that was just acquired, for strategies. It reports Acquired to
// the Trace in ctx, and later events too. Without a Trace it keeps nothing of ctx.
func NewLock(ctx context.Context, g lease.Grant, l lease.Lease) *Lock {
	made := &struct { // one allocation for both
		lock   Lock
		hidden hidden
	}{hidden: hidden{g.Token, l, l}}
	lock := &made.lock
	lock.name, lock.owner, lock.mode, lock.ttl, lock.fence, lock.deadline = g.Name, g.Owner, g.Mode, g.TTL, g.Fence, g.Deadline
	lock.hidden.Store(&made.hidden)
	if g.MinHold > 0 { // it counts from now on, which is later than the acquire at the server
		lock.extras().keepUntil = time.Now().Add(g.MinHold)
	}
	if t := locktrace.From(ctx); t != nil {
		lock.traced(ctx, t)
	}
	return lock
}

func (l *Lock) current() lease.Lease {
	if !l.valid() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hidden.Load().lease
}

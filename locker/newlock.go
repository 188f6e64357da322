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
		state  lockState
		hidden hidden
	}{hidden: hidden{g.Token, l}}
	s, lock := &made.state, new(Lock)
	s.name, s.owner, s.mode, s.ttl, s.fence, s.deadline = g.Name, g.Owner, g.Mode, g.TTL, g.Fence, g.Deadline
	s.hidden.Store(&made.hidden)
	lock.state.Store(s)
	s.strong = lock
	if t, ok := l.(lease.Tokened); ok {
		kept := t
		s.extras().tokened.Store(&kept)
	}
	if g.MinHold > 0 { // it counts from now on, which is later than the acquire at the server
		s.extras().keepUntil = time.Now().Add(g.MinHold)
	}
	if t := locktrace.From(ctx); t != nil {
		s.startTracing(ctx, t)
	}
	return lock
}

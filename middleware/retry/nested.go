package retry

import (
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// enclosingHold returns a hold of this chain that the request's ctx carries and that excludes the
// request: waiting would last until ctx ends, because the holder is the caller. It returns nil if
// there is none.
func (a *acquisition) enclosingHold() lease.Hold {
	if a.resuming() {
		return nil
	}
	for hold := range lease.HoldsFrom(a.ctx, a.req.Name) {
		if a.queues.acquiredHere(hold) && hold.Err() == nil && excludes(hold, a.req.Mode) {
			return hold
		}
	}
	return nil
}

// acquiredHere reports whether hold was acquired through the Locker of qs.
func (qs *queues) acquiredHere(hold lease.Hold) bool {
	waking, ok := lease.Find[*wakingLease](hold.Lease())
	for ok && waking.queues != qs { // of another retry around this one
		waking, ok = lease.Find[*wakingLease](waking.Lease)
	}
	return ok
}

// excludes reports whether a request of that mode waits for the end of hold if it is refused. One
// for another permit of a semaphore may wait for other holders, and a shared request beside a
// shared hold for an exclusive waiter that gives up.
func excludes(hold lease.Hold, mode locker.Mode) bool {
	if counted, ok := lease.Find[lease.Counted](hold.Lease()); ok && counted.Permits() > 1 {
		return false
	}
	return hold.Mode() == locker.Exclusive || mode == locker.Exclusive
}

// nestedError returns the error of a request that was refused because its own call chain holds the
// lock, or nil if that is not why. If the refusal names another holder, the hold was lost.
func (a *acquisition) nestedError(held *locker.ContentionError) error {
	outer := a.enclosingHold()
	switch {
	case outer == nil, held.Foreign, held.Released:
		return nil
	case held.Owner != "" && held.Owner != outer.Owner() && outer.Mode() == locker.Exclusive:
		return nil
	}
	refusal := *held
	refusal.Nested = true
	return opError(a.req, &refusal)
}

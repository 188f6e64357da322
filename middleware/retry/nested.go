package retry

import (
	"github.com/holdfast-go/holdfast/internal/callchain"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// enclosingHold returns a live hold in the request's ctx, acquired through this retry, that excludes
// the request, or nil. Waiting for such a hold would last until ctx ends: the caller is the holder.
func (a *acquisition) enclosingHold() lease.Hold {
	if a.resuming() {
		return nil
	}
	for lock := range callchain.Locks[*locker.Lock](a.ctx, a.req.Name) {
		hold := lock.Hold()
		if a.queues.acquiredHere(hold) && hold.Err() == nil && excludes(hold, a.req.Mode) {
			return hold
		}
	}
	return nil
}

// acquiredHere reports whether hold was acquired through the Locker of qs.
func (qs *queues) acquiredHere(hold lease.Hold) bool {
	waking, ok := lease.Find[*wakingLease](hold.Lease())
	for ok && waking.queues != qs { // another retry wraps this one
		waking, ok = lease.Find[*wakingLease](waking.Lease)
	}
	return ok
}

// excludes reports whether a refused request of mode waits for the end of hold. A request for another
// permit of a semaphore may wait for other holders instead. A shared request beside a shared hold
// may wait for an exclusive waiter to give up.
func excludes(hold lease.Hold, mode locker.Mode) bool {
	if lease.TraitsOf(hold.Lease()).Permits > 1 {
		return false
	}
	return hold.Mode() == locker.Exclusive || mode == locker.Exclusive
}

// nestedError returns ErrNested for a request refused because its own call chain holds the lock, or
// nil. If the refusal names another holder, the hold of the chain was lost.
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

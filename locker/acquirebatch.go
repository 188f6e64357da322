package locker

import "context"

// BatchAcquirer acquires the locks of several names, or none, in one round trip. Strategies
// implement it, and middleware by the AcquireBatch of the Locker inside: errors.ErrUnsupported if
// there is none. Middleware may change the requests first, as tracing does, or refuse, as retry does
// while somebody waits for one of the names.
//
// A batch takes its locks before they pass through the Acquire of middleware. So middleware with a
// say in who may have a lock leaves AcquireBatch out: where one Locker of the chain has none,
// [AcquireAll] acquires one lock after another. If Acquire passes another request on than the batch
// had, the batch is undone, and the locks are acquired one after another.
type BatchAcquirer interface {
	// AcquireBatch makes one attempt to acquire the locks of all reqs, or none. It does not wait
	// for a holder. reqs are valid, in ascending order of their names, without Resume, and with no
	// name twice.
	//
	// A nil Batch means that nothing was sent; the error says why, such as errors.ErrUnsupported.
	// An error with a Batch is that of the attempt: an [OpError] that names the lock that failed.
	AcquireBatch(ctx context.Context, reqs []Request) (Batch, error)
}

// Batch is an attempt to acquire the locks of several requests. It is passed on to the Acquire of
// each, so that middleware sees each lock as any other.
type Batch interface {
	// Context returns a copy of parent for Acquire. With it, an Acquire of one of the requests,
	// with NoWait set and without MaxWait, sends nothing: it returns the lock that the batch
	// acquired, or the error of the one that failed.
	Context(parent context.Context) context.Context
	// Unclaimed returns the locks that no Acquire has returned, for the caller to release.
	Unclaimed() []*Lock
	// End is called once the locks are claimed or released.
	End()
}

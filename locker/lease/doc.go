// Package lease is for the authors of strategies and of middleware. Programs that acquire locks do
// not need it.
//
// A strategy implements [Lease], its side of one acquired lock, and describes the lock by a
// [HoldInfo]. locker.NewLock makes the Lock from the two.
//
// Middleware acts on a Lock through the [Hold] of Lock.Hold: it wraps the Lease, adds a Trace,
// renews many locks together, or ends a lost lock.
package lease

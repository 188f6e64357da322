// Package lease is for the authors of strategies and of middleware. Programs that acquire locks do
// not need it.
//
// A strategy implements [Lease], its side of one lock that it acquired, and describes the lock by a
// [Grant]. locker.NewLock makes the Lock from the two.
//
// Middleware acts on a Lock through [Hold], which Lock.Hold returns: it wraps the Lease, adds a
// Trace, renews many locks together, or ends a lock that it knows to be lost.
package lease

// Package named locks and unlocks by name, for callers that cannot keep a [locker.Lock]: it has
// Lock(ctx, name), TryLock(ctx, name) and Unlock(ctx, name), as the storage interface of certmagic
// and others require. [Mutex] keeps the Lock of each name between the two calls.
//
//	locks, err := named.New(l, locker.Request{}) // l waits and renews, as that of holdfast.New
//	...
//	err = locks.Lock(ctx, "site.pem")
//	...
//	err = locks.Unlock(ctx, "site.pem")
//
// # What is guaranteed
//
//   - Callers of one process that Lock the same name wait for one another, over any Locker. Callers
//     in several processes wait if the Locker does.
//   - A lost lock does not block its name: others can Lock it at once, in this process too. The
//     Unlock of the lost lock returns an error that matches locker.ErrLost, and does not release a
//     lock acquired since by another caller.
//   - An Unlock whose ctx carries another owner than the ctx of the Lock releases nothing.
//   - An unused name takes no memory. A lost lock is remembered until its Unlock; only the latest
//     1,024 are.
//
// # What is not guaranteed
//
// The caller does not learn of a loss before its Unlock: no ctx ends. If the work can be stopped,
// use [locker.Do]. A Mutex is not reentrant: a caller locking a name twice waits for itself. Each
// Lock needs its Unlock, even after a loss. If an Unlock is left out, the next Unlock of the name
// returns locker.ErrLost in its place and leaves the lock held, unless their owners differ.
package named

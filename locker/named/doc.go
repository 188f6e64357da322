// Package named locks names without a [locker.Lock] in the caller's hands: Lock(ctx, name),
// TryLock(ctx, name) and Unlock(ctx, name), as the interfaces of certmagic and of many other programs
// ask for. [Locks] keeps the lock of each name between the two calls.
//
// # What is kept
//
//   - Callers of one process that Lock the same name wait for one another, over any Locker. Those of
//     several processes wait if the Locker does.
//   - A lock that is lost no longer occupies its name: others can Lock it at once, in this process
//     too. The Unlock of the lost lock still says so (locker.ErrLost), and does not release the lock
//     that somebody else acquired since.
//   - Between owners: an Unlock whose ctx carries another owner than that of the Lock releases nothing.
//   - Nothing stays of a name that nobody holds or waits for. A lost lock is remembered until its
//     Unlock, the last 1,024 of them at most.
//
// # What is not
//
// The caller does not learn of a loss before its Unlock: no ctx ends. Where the work can be stopped,
// [locker.Do] is better. A name is not re-entered: a caller that Locks it twice waits for itself.
package named

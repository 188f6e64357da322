// Package lockertest has a [Locker] in memory, for unit tests of programs that take locks. It needs
// no Redis, and no client.
//
// Give one Locker to all parts of a test that exclude each other. Each middleware chain around it
// acts as a process. The Locker passes the cases of the conformance suite that need no server, as
// the strategies do. It uses time.Now, so in a testing/synctest bubble leases go by fake time, and
// end exactly on time.
//
//   - [New] makes locks: exclusive or shared, with conversions, fencing tokens, Resume and MinHold,
//     as strategies/rwhash. [NewSemaphore] makes semaphores, as strategies/semaphore.
//   - [Locker.SetOutage] begins and ends an outage of the server.
//   - [Locker.FailAcquire], [Locker.FailRenew] and [Locker.FailRelease] make one call fail.
//   - [Locker.Hold] is another process holding a lock. [Locker.Expire] and [Locker.Forget] take a
//     lock away from its holder.
//   - [Locker.Calls] returns the program's calls, and [Locker.Inspect] the state of a name.
//
// Everything else works over it as over a strategy: locker.Do, Try, AcquireAll, DoAll, Resume,
// Break and Watch, Handle.Release, packages leader and named, and the middleware. Like any strategy,
// a Locker makes one attempt and does not renew. Put the middleware of the program around it, for
// example with holdfast.Wrap.
//
// # Differences from the strategies
//
//   - There is one clock and so no drift: a Lock's Deadline is the end of its lease, without a
//     margin.
//   - Fencing tokens of a name are 1, 2, 3 and so on.
//   - A lock orders waiting writers as strategies/single does, and lets a waiting writer keep new
//     readers out as strategies/rwhash does. Newcomers may pass a waiting writer. Readers that
//     waited for a writer have no precedence over the next writer.
//   - An owner that acquires again is refused; with strategies/reentrant it succeeds.
//   - An outage begins and ends at once: no connection breaks while a command is on its way. No
//     command is executed late.
package lockertest

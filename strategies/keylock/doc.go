// Package keylock is the engine of strategies that keep a lock in one key and change it by Lua
// scripts. The strategies single, reentrant, rwhash and semaphore are made with it; so can be
// those of others.
//
// The author of a strategy provides a [Spec]: a name, and the scripts. Acquire, Renew and Release
// are required. The others are optional; without one, what it is for ends in
// errors.ErrUnsupported. [New] makes a Locker of a Spec and a driver. The engine then does the
// rest, which is the same for every such strategy:
//
//  1. It checks each Request, names the keys, and builds the arguments of the scripts.
//  2. It bounds each send by Config.AttemptTimeout, and resends a command whose reply did not
//     arrive until its outcome is known or its context ends. An acquire or a resume is resent for
//     max(TTL, 30 s) at most, or for one AttemptTimeout if it does not wait and its context has no
//     deadline. An operation on a hold is resent until its Deadline at most.
//  3. It computes the Deadline from the time of the send that acquired or renewed the lock, less
//     1 % of the TTL and 2 ms for the drift of clocks. A reply after the Deadline is
//     locker.ErrLost, and the hold is released.
//  4. It cleans up in the background behind an acquire that was abandoned with its outcome unknown:
//     it runs Release, or UndoResume, until nothing can be left. Late replies shorten that.
//  5. It waits for a release for at most two AttemptTimeouts, whatever the context, and then goes
//     on in the background.
//  6. It sends the renewals of many locks in one round trip, if the driver can.
//  7. With Config.MinReplicas it has so many replicas acknowledge each acquire, resume, renewal and
//     upgrade, and undoes an acquire that falls short.
//  8. It passes fencing tokens on, and keeps their counter for a day after its last use.
//  9. It decodes the replies. Foreign data at a key is an error that says what is there; a reply
//     that no script of the strategy gives is an error that matches driver.ErrPermanent, and what an
//     acquire or a release with such a reply may have left is cleaned up.
//  10. It reports each attempt to the Trace in the context.
//
// What the scripts must do is said in [Spec]; [docs/writing-a-strategy.md] walks through an
// example. The suite in package conformance proves a strategy.
//
// [docs/writing-a-strategy.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/writing-a-strategy.md
package keylock

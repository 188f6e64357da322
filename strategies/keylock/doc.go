// Package keylock is the engine of strategies with a lock in one key and Lua scripts. The strategies
// single, reentrant, rwhash and semaphore are made with it; so can be those of others.
//
// The author of a strategy provides a [Spec]: a name, and the scripts. Acquire, Renew and Release
// are required. The others are optional; without one, its operation returns errors.ErrUnsupported.
// [New] makes a Locker of a Spec and a driver. The engine does the rest, the same for every strategy:
//
//  1. It checks each Request, names the keys, and builds the arguments of the scripts.
//  2. It bounds each send by Config.AttemptTimeout, and resends an unanswered command until its
//     outcome is known or its context ends. An acquire or a resume is resent for max(TTL, 30 s) at
//     most, or for one AttemptTimeout with NoWait and no MaxWait. An operation on a hold is resent
//     until its Deadline at most.
//  3. It computes the Deadline from the time of the send of the acquire or renewal, less 1 % of the
//     TTL and 2 ms for the drift of clocks. A reply after the Deadline is locker.ErrLost, and the
//     hold is released.
//  4. After an abandoned acquire of unknown outcome it cleans up in the background: it runs Release,
//     or UndoResume, until nothing can be left. Late replies shorten that.
//  5. It waits for a release for at most Config.ReleaseTimeout, whatever the context, and then goes
//     on in the background.
//  6. It sends the renewals of many locks in one round trip, if the driver can.
//  7. With Config.MinReplicas, that many replicas must acknowledge each acquire, resume, renewal and
//     upgrade. An acquire without enough of them is undone.
//  8. It passes fencing tokens on, and keeps their counter for a day after its last use.
//  9. It decodes the replies. Foreign data at a key is an error with a description of the data. A
//     malformed reply is an error that matches driver.ErrPermanent, and the possible rest of its
//     acquire or release is cleaned up.
//  10. It reports each attempt to the Trace in the context.
//
// [Spec] says what the scripts must do; [docs/writing-a-strategy.md] walks through an example. The
// suite in package conformance proves a strategy.
//
// [docs/writing-a-strategy.md]: https://github.com/holdfast-go/holdfast/blob/main/docs/writing-a-strategy.md
package keylock

// Package history records what concurrent clients of a lock did and were told, and checks with
// porcupine (https://github.com/anishathalye/porcupine, after Lowe, "Testing for linearizability",
// 2017) that a lock which keeps its promises could have given these answers. It knows no Redis:
// real servers and simulated ones are recorded alike.
//
// A [Recorder] wraps the calls of its [Client]s. [Check] takes the events, name by name, and tells:
//
//   - Exclusion: an acquire succeeds only where nobody holds that it may not hold beside. A hold
//     lasts from its acquire to its release, or to its Deadline: every instant before the last
//     Deadline that its holder was promised is checked, whether or not the holder looked.
//   - No hold ends early: a renewal or a release that says "lost" before the Deadline is a broken
//     promise.
//   - No hold stays: what was not released is gone one TTL and [Rules].Linger after its last
//     renewal. A refusal is legal only while somebody holds, or while something may be left of a
//     call whose outcome is unknown.
//   - A hold with a MinHold that is released earlier keeps out whom it excluded until MinHold has
//     passed since its acquire, whatever becomes of its client and of the answer, and no longer.
//   - Fencing tokens grow from tenure to tenure, also through the loss of a server's state.
//   - A hold is resumed once, by the Handle of its Lock, while it is there, and keeps its mode. The
//     Lock that it was taken from is lost: a renewal or a conversion of it fails, though until it
//     asks it may believe in its Deadline. Loss is for good.
//   - A hold that a holder hands over to a waiter of its own process continues without a gap: nobody
//     else holds in between, and what a server loses of the one is lost of the other. The token is
//     higher. The Deadline stays, unless a renewal moves it.
//   - A write to the fenced [Store] by a holder is never rejected.
//   - A lease is as long as was asked for, less the drift; a token that was asked for is there; a
//     renewal neither shortens a lease nor brings one back.
//
// A call without an answer may have taken effect at any time until the network has let go of it. A
// window in which a server may lose its state is an event too ([Lose]): exclusion that is broken
// from its beginning on is counted as a loss, not as a violation, and what went wrong before is
// one. A check that runs out of time is reported as such.
package history

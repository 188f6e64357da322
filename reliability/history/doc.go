// Package history records the calls of concurrent clients of a lock with their answers, and checks
// with porcupine (https://github.com/anishathalye/porcupine, after Lowe, "Testing for
// linearizability", 2017) that a correct lock could have given these answers. It does not depend on
// Redis: real and simulated servers are recorded alike.
//
// A [Recorder] wraps the calls of its [Client]s. [Check] takes the events of one name and checks:
//
//   - Exclusion: an acquire succeeds only if no conflicting hold exists. A hold lasts from its
//     acquire to its release or its Deadline. Every instant before the holder's last promised
//     Deadline is checked, whether or not the holder looked.
//   - No hold ends early: a renewal or a release must not report a loss before the Deadline.
//   - No hold stays: an unreleased hold ends one TTL and [Rules].Linger after its last renewal. A
//     refusal is legal only while another hold exists, or while a call with an unknown outcome
//     may have left something.
//   - A hold released before its MinHold has passed since the acquire excludes others until then,
//     and no longer, also if its client dies or the release is not answered.
//   - Fencing tokens increase from tenure to tenure, also after the loss of a server's state.
//   - A hold is resumed at most once, by the Handle of its Lock, while it exists, and keeps its
//     mode. Its former Lock is lost: renewals and conversions of it fail, though it may report
//     its Deadline until then. A lost Lock stays lost.
//   - A hold handed over to a waiter of the same process continues without a gap: nobody else holds
//     the lock in between, and a loss at the server affects both. The token is higher. The
//     Deadline is the same, unless a renewal moves it.
//   - A write to the fenced [Store] by a holder is never rejected.
//   - A lease is at least as long as requested, less the drift. A requested token is present. A
//     renewal neither shortens a lease nor revives one.
//
// A call without an answer may take effect at any time until the network has dropped it. A possible
// loss of a server's state is an event too ([Lose]). A broken exclusion counts as a loss from then
// on, and as a violation before. A check that runs out of time is reported as such.
package history

// Package lockertest has a [Locker] in memory, for unit tests of programs that take locks. It needs
// no Redis, and no driver.
//
// It behaves as a Locker over Redis does: leases end by themselves, a lock that was lost says so, a
// refusal names the holder, bad requests are refused, fencing tokens increase. Time is time.Now, so
// that leases end at once, and exactly, in a testing/synctest bubble. [Locker.Expire],
// [Locker.Forget], [Locker.Hold] and the Fail methods bring about what is rare in production and
// belongs in a test.
//
// It differs where a test is better served. One server in one process has no clock drift: a Lock's
// Deadline is the end of its lease, with no margin. Fencing tokens of a name are 1, 2, 3 and so on.
// Both modes and their conversion are there, as in strategies/rwhash, but a waiting writer holds up
// no readers. As on any bare strategy, Acquire makes one attempt; the middleware of the program
// under test goes around it. Releases are not announced: middleware/retry looks again by itself.
package lockertest

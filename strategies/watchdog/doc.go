// Package watchdog renews the locks that come through it, over any Locker, so that work may take longer than the TTL and a
// holder that dies still lets go within one.
//
// A lock is renewed when a third of its lease is over, a little sooner by a random amount, through [locker.Lock.Renew] or,
// where its Lease can travel with others ([lease.Batched]), [lease.RenewBatch]: Deadline, Done and the Trace's Renewed are
// as if the holder had renewed it. Every lock is watched, resumed ones too, but those whose lease never ends.
//
// # What is guaranteed
//
//   - A renewal that fails is tried again, after 50 ms doubling to 1 s (less where the TTL is short), until the Deadline,
//     whatever the error: a permission that was taken away may be given back. An outage that is over well before that loses
//     nothing. One that lasts ends the lock at its Deadline, with ErrLost and, below it, the error of the last renewal.
//   - A renewal that finds the hold gone ends the lock at once, with ErrLost.
//   - A callback that blocks, of a Trace or of AfterDone, delays no renewal: see [locktrace.Trace].
//   - Once Release was called, no renewal begins. Release does not wait for one in flight, whose answer changes nothing.
//   - One timer serves all locks of a Middleware. There is no goroutine while no renewal is due.
//   - A server that does not answer delays no renewal at other servers or at other nodes of its
//     cluster. A driver has one batch in flight, or, where renewals are sent one by one (as with
//     MinReplicas), each Locker has sixteen renewals in flight. A batch or renewal without an
//     answer for 50 ms no longer counts against that.
//   - The number of goroutines is bounded: 16 for the batches of a driver, and 128 for the renewals
//     that a Locker, or a driver after a failed batch, sends one by one. The first and later
//     repetitions of failed renewals have the same limits again. There are that many only while a
//     server is silent.
//
// # What is not
//
// A lock that is neither released nor lost is renewed for as long as the process lives, whether or not its holder makes
// progress, or still knows of the lock. Config.MaxHold and Config.MaxRenewals bound that. A Lock whose process stands still
// is not renewed: see package locker for what to do about the work that goes on afterwards.
package watchdog

// Package watchdog renews the locks that come through it, over any Locker, so that work may take longer than the TTL and a
// holder that dies still lets go within one.
//
// A lock is renewed when a third of its lease is over, a little sooner by a random amount, through [locker.Lock.Renew] or,
// where its Lease can travel with others ([locker.Batched]), [locker.RenewBatch]: Deadline, Done and the Trace's Renewed are
// as if the holder had renewed it. Every lock is watched, resumed ones too, but those whose lease never ends.
//
// # What is guaranteed
//
//   - A renewal that fails is tried again, after 50 ms doubling to 1 s (less where the TTL is short), until the Deadline. An
//     outage that is over well before that loses nothing. One that lasts ends the lock at its Deadline, with ErrLost.
//   - A renewal that finds the hold gone ends the lock at once, with ErrLost.
//   - Once Release was called, no renewal begins. Release does not wait for one in flight, whose answer changes nothing.
//   - One timer serves all locks of a Middleware. There is no goroutine while no renewal is due, and then at most one per
//     driver (or wrapped Locker) for a batch and sixteen for renewals that travel alone, however many locks there are. A
//     server that does not answer delays the renewals of its own driver, and of no other.
//
// # What is not
//
// A lock that is neither released nor lost is renewed for as long as the process lives, whether or not its holder makes
// progress, or still knows of the lock. Config.MaxHold and Config.MaxRenewals bound that. A Lock whose process stands still
// is not renewed: see package locker for what to do about the work that goes on afterwards.
//
// A batch is answered when all its servers have answered. Where one node of a cluster is silent, the renewals of the others
// have to be sent again: they then travel alone, and with thousands of locks on the silent node some may come too late.
package watchdog

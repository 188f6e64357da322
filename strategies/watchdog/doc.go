// Package watchdog renews the locks that are acquired through it, over any Locker. So work may take
// longer than the TTL, and the lock of a holder that dies is still free within one TTL.
//
//	renew, err := watchdog.New(watchdog.Config{MaxHold: time.Hour}) // by default without a bound
//	...
//	l = locker.Chain(l, renew)
//
// A lock is renewed when a third of its lease is over, a little sooner by a random amount. Renewals
// that are in flight at the same time travel together, if the driver allows it: see adapter.Pipeline.
// Deadline, Done and the Trace's Renewed are as if the holder had called [locker.Lock.Renew]. All
// locks are renewed, resumed ones too, except those whose lease never ends.
//
// # What is guaranteed
//
//   - A failed renewal is repeated after 50 ms, doubling to 1 s (less if the TTL is short), until
//     the Deadline, whatever the error: a permission may come back. An outage that ends well before
//     the Deadline loses nothing. One that lasts ends the lock at its Deadline, with ErrLost, which
//     wraps the error of the last renewal.
//   - A renewal that finds the hold gone ends the lock at once, with ErrLost.
//   - A callback that blocks, of a Trace or of AfterDone, delays no renewal: see locktrace.Trace.
//   - After Release is called, no renewal begins. Release does not wait for one in flight, whose
//     answer changes nothing.
//   - One timer serves all locks of a Middleware. There is no goroutine while no renewal is due.
//   - Up to 128 locks of a server that does not answer delay no renewal at other servers or at other
//     nodes of its cluster. Each Locker has up to 128 renewals in flight. A renewal without an answer
//     for 50 ms no longer counts against that, up to 192 in all.
//   - The number of goroutines is bounded: 192 for the renewals of a Locker. The first and later
//     repetitions of failed renewals have the same limits again. There are more than 128 only while
//     renewals are without an answer for 50 ms.
//
// # What is not guaranteed
//
// Thousands of locks of a silent server delay the renewals of other servers through the same
// Locker. With a TTL of 30 s, 10,000 of them delay others by up to ten seconds, which costs none. With
// a TTL of 3 s most of the others are lost. A Locker for each server avoids that.
//
// A lock that is neither released nor lost is renewed for as long as the program has the Lock, even
// if the holder makes no progress. Config.MaxHold and Config.MaxRenewals bound that. Once the Lock
// was garbage-collected it is no longer renewed, and its lease runs out; its loss then has the
// cause locker.ErrForgotten. That takes two renewals, a garbage collection and one TTL. Some Locks
// are never taken for forgotten, such as one whose Done was called (see locker.Lock): they are
// renewed for as long as the process lives.
//
// While the process is suspended nothing is renewed: package locker says how to protect what the
// work writes after that.
package watchdog

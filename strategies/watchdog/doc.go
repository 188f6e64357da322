// Package watchdog renews the locks acquired through it, over any Locker. So work may take longer
// than the TTL, and a dead holder's lock is still free within one TTL.
//
//	renew, err := watchdog.New(watchdog.Config{MaxHold: time.Hour}) // by default without a bound
//	...
//	l = locker.Chain(l, renew)
//
// A lock is renewed when a third of its lease is over, a little sooner by a random amount. Renewals
// in flight at the same time travel together, if the driver allows it: see adapter.Pipeline.
// Deadline, Done and the Trace's Renewed are as if the holder had called [locker.Lock.Renew]. All
// locks are renewed, resumed ones too, except those whose lease never ends.
//
// # What is guaranteed
//
//   - A failed renewal is repeated after 50 ms, doubling to 1 s (less if the TTL is short), until
//     the Deadline, also after NOPERM: a permission may come back. Only after ErrClosed, ErrInvalid
//     and errors.ErrUnsupported it is not repeated. An outage that ends well before the Deadline
//     loses nothing. A longer one ends the lock at its Deadline, with an ErrLost that wraps the
//     error of the last renewal.
//   - A renewal that finds the hold gone ends the lock at once, with ErrLost.
//   - A blocking callback, of a Trace or of AfterDone, delays no renewal: see locktrace.Trace.
//   - After Release is called, no renewal begins. Release does not wait for one in flight; its
//     answer changes nothing.
//   - One timer serves all locks of a Middleware. There is no goroutine while no renewal is due.
//   - A server that does not answer delays no renewal at other servers or at other nodes of its
//     cluster, however many locks it has.
//   - The number of renewals in flight is bounded: 1,024 at each server (the method Server of
//     [lease.Lease]), or of each Locker with Leases without that method, as those of a quorum. The
//     first and later repetitions of failed renewals have the same limit again. Each is a goroutine.
//
// # What is not guaranteed
//
// A lock that is neither released nor lost is renewed for as long as the program has the Lock, even
// if the holder makes no progress. Config.MaxHold and Config.MaxRenewals bound that. Once the Lock
// was garbage-collected it is no longer renewed, and its lease runs out; its loss then has the
// cause locker.ErrForgotten. This takes two renewals, a garbage collection and one TTL. Some Locks
// are never taken for forgotten, such as one whose Done was called (see locker.Lock): they are
// renewed for as long as the process lives.
//
// While the process is suspended nothing is renewed: package locker says how to protect later
// writes.
package watchdog

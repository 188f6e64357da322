// Package leader elects one of several processes, over any Locker.
//
//	err := leader.Run(ctx, l, leader.Config{
//		Name: "billing",
//		Lead: func(ctx context.Context, term int64) error {
//			return bill(ctx, term) // ctx ends with the leadership
//		},
//	})
//
// A [Candidate] campaigns for a name: it waits for the name's lock. While it holds the lock it
// leads, and [Config].Lead runs. When the leadership ends, it campaigns again. Most programs need
// only [Run]. [Observe] yields who leads.
//
// Use a Locker that waits and renews, as from holdfast.New or holdfast.Wrap (middleware/retry and
// strategies/watchdog). Over a bare strategy a Candidate polls, with the pauses of Config.Policy,
// and each term ends after one TTL. The middleware of the Locker traces, measures and logs.
//
// The strategy must have an exclusive mode and fencing tokens; a quorum of servers has both. New
// refuses a semaphore of more than one permit, since all its holders would lead.
//
// # Terms
//
// A term is one hold of the lock. Its number is the fencing token of the hold, so it increases from
// term to term, whichever process leads. If a late write would do harm, send the term with each
// write, and let the store refuse lower ones: see [locker.Lock.Fence].
//
// # What is guaranteed
//
//   - At most one Candidate of a name leads at a time, under the assumptions of package locker.
//     Lead's ctx ends when the lease is lost, at its Deadline at the latest, even if no packet
//     comes back.
//   - [Candidate.IsLeader] and [Candidate.Term] send nothing. They report that the Candidate leads
//     only before the Deadline and before Lead's ctx has ended. A process frozen past its lease
//     learns with its next call that it no longer leads.
//   - One Candidate never runs Lead twice at once. It releases the lock only once Lead has
//     returned; until StopTimeout has passed, the lease is renewed.
//   - After Lead has returned, panicked or called runtime.Goexit, the lock is released, and the
//     next waiting Candidate leads a few milliseconds later. If a process dies, the next one leads
//     when the lease has ended: within one TTL.
//
// # A Lead that does not return
//
// Lead should return soon after its ctx ends. Run waits for it for Config.StopTimeout. Then it
// returns an error that matches [ErrLeadRunning] and no longer renews the lock: it is free at the
// end of its lease, or as soon as Lead returns. Another process may then lead while this Lead still
// runs. If that would do harm, end the process when Run returns this error.
//
// # What is not guaranteed
//
// A check is not a barrier. A process may be suspended between IsLeader and its next step, and Lead
// may run past the end of its ctx. Only a store that checks the term keeps late writes out.
package leader

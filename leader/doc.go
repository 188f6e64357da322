// Package leader elects one of several processes, over any Locker.
//
// A [Candidate] campaigns for a name: it waits for the lock of that name, and while it holds it,
// it leads: [Config].Lead runs. When the leadership ends, it campaigns again. [Run] does so for
// programs that need no more. [Observe] reports who leads.
//
// The Locker waits and renews, as the one that holdfast.New or holdfast.Wrap returns
// (middleware/retry and strategies/watchdog). Over a bare strategy a Candidate polls, with the
// pauses of Config.Policy, and each term ends after one TTL. Any exclusive strategy will do, as
// will a quorum of servers. Tracing, metrics and logging are those of the Locker.
//
// # Terms
//
// A term is one hold of the lock. Its number is the fencing token of the hold, so it increases
// from term to term, whichever process leads. What a leader writes where a late write would do
// harm needs the term, checked there: see [locker.Lock.Fence].
//
// # What is guaranteed
//
//   - At most one Candidate of a name leads at a time, as far as the lock keeps that up (package
//     locker). Lead's ctx ends when the lease is lost, at its Deadline at the latest, even if no
//     packet comes back.
//   - [Candidate.IsLeader] and [Candidate.Term] ask nobody. They say that the Candidate leads only
//     before the Deadline and while Lead's ctx has not ended. A process that was frozen past its
//     lease learns with its next call that it no longer leads.
//   - One Candidate never runs Lead twice at once. It steps down once Lead has returned, and not
//     before; until then the lease is renewed.
//   - After Lead has returned, panicked or called runtime.Goexit, the lock is released, and the
//     next Candidate that waits leads a few milliseconds later. If a process dies, the next one
//     leads when the lease has ended: within one TTL.
//
// # A Lead that does not return
//
// Lead should return soon after its ctx ends. Run waits for it for Config.StopTimeout. Then it
// returns an error that matches [ErrLeadRunning], and leaves the lock alone: nobody renews it any
// more, and it is free at the end of its lease, or as soon as Lead returns. Another process may
// lead from then on, while this Lead still runs. A program in which that would do harm ends itself
// when Run returns this error.
//
// # What is not guaranteed
//
// A check is not a barrier. A process may be suspended between IsLeader and what it does next, and
// Lead may run past the end of its ctx. The term protects what is written.
package leader

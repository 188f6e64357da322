// Package clientgo elects the leader of a Kubernetes controller over Redis or Valkey. A [Lock]
// takes the place of a Lease object: it is a resourcelock.Interface for the LeaderElector of
// k8s.io/client-go/tools/leaderelection, over any Locker of Holdfast:
//
//	lock, err := clientgo.New(l, clientgo.Config{Name: "billing"})
//	...
//	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
//		Lock:            lock,
//		LeaseDuration:   15 * time.Second,
//		RenewDeadline:   10 * time.Second,
//		RetryPeriod:     time.Second,
//		ReleaseOnCancel: true,
//		Callbacks: leaderelection.LeaderCallbacks{
//			OnStartedLeading: lock.Lead(func(ctx context.Context, term int64) {
//				work(ctx, term) // ctx ends with the lease
//			}),
//			OnStoppedLeading: func() {},
//		},
//	})
//
// l is a bare strategy, such as that of single.New, or the chain of holdfast.New. In the options of
// a controller-runtime manager, the field for the lock is LeaderElectionResourceLockInterface. The
// API server of Kubernetes is not used.
//
// In a new program, prefer package leader of Holdfast. There a release wakes a candidate, which
// leads about a millisecond later; here it polls every RetryPeriod. Both kinds of candidates
// exclude each other under one name of one strategy, so a program can change from one to the other
// while both versions run.
//
// # What is guaranteed
//
//   - At most one candidate holds the lock at a time, under the assumptions of package locker. The
//     lock decides that, by the server's clock: times in LeaderElectionRecords, and the clocks of
//     the candidates, do not matter.
//   - A term is one hold of the lock. Its number, the fencing token, increases from term to term.
//   - The ctx of the work of Lead ends when its lease is lost: at the Deadline of the hold at the
//     latest, even if no packet comes back; by the next RetryPeriod if the key was deleted.
//   - A hold that was lost is not acquired again in the same term, although others may not have
//     noticed that the lock was free. The LeaderElector reports at its next attempt that it is not
//     the leader (IsLeader), and stops within RenewDeadline after that.
//   - With ReleaseOnCancel the lock is released once the work of Lead has returned, if that takes
//     no longer than RenewDeadline. Otherwise, and without ReleaseOnCancel, others lead when the
//     lease has ended, even if strategies/watchdog renews the locks of the Locker.
//
// # What is not guaranteed
//
// The LeaderElector is late: it ends the ctx of OnStartedLeading, and calls OnStoppedLeading, up to
// RenewDeadline after a loss, and after its attempt to release. Another candidate may lead by then.
// Lead does not rely on either. A program that cannot use Lead, as with controller-runtime, should
// end its process when the Done of [Lock.Held] is closed. Call Held after the election: before, it
// returns nil, whose Done is closed already.
//
//	<-mgr.Elected()
//	<-lock.Held().Done()
//	os.Exit(1)
//
// Nor is a ctx a barrier: a process may be suspended, or ignore the end of its ctx. What must not
// be written late needs the number of the term, checked where it is written: see
// [locker.Lock.Fence].
//
// A LeaderElector ends after one term. Call Run in a loop, or end the process.
//
// # How to configure it
//
// LeaseDuration is the TTL of the lock, in whole seconds: client-go drops fractions, and less than
// a second is refused. Keep RenewDeadline plus RetryPeriod below LeaseDuration, so that the
// LeaderElector stops before the lease ends; the usual 15 s, 10 s and 2 s do. Another candidate
// leads within 2.2 RetryPeriods of a release, and within LeaseDuration plus 2.2 RetryPeriods of a
// crash. An attempt costs the server some microseconds, so a RetryPeriod of 200 ms is fine.
//
// Config.Identity must be unique among the candidates; by default it is random. It decides what
// happens when a candidate is killed and starts again under the same one, such as the name of its
// Pod, before its lease has ended:
//
//   - strategies/single, and most others: it waits for the end of the lease.
//   - strategies/reentrant: it leads at once, in the same term. If two processes had the same
//     identity, both would lead.
//
// LeaderElectionConfig.Coordinated is not supported: such a candidate never leads. The records have
// no LeaderTransitions of other candidates.
package clientgo

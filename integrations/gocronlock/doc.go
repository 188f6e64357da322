// Package gocronlock lets several replicas of a program share the jobs of [gocron]: at each tick of
// a job, one of them runs it. It adapts Holdfast's locks to gocron's interfaces:
//
//	locks, err := gocronlock.New(l, gocronlock.Config{MinHold: 10 * time.Second})
//	...
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locks))
//
// l waits and renews, as the Locker of holdfast.New.
//
//   - [Locker] is a gocron.Locker. The replicas compete for each run: whichever comes first runs
//     the job, and the load spreads over the replicas.
//   - [Elector] is a gocron.Elector. One replica runs all jobs, until it stops or dies. It asks the
//     server nothing at a tick.
//
// Name each job with gocron.WithName. The default is the name of its function. A closure's may
// change with the next build; during a rollout the job would then run twice.
//
// # What is guaranteed
//
// Under the assumptions of package locker:
//
//   - Two runs of a job never hold its lock at the same time, whichever replica they are in. The
//     lock is renewed for as long as the run lasts.
//   - A tick runs at most once, if MinHold is 2 s or longer and the replicas reach the tick within
//     half of MinHold. A job of 20 ms on replicas with different clocks runs once, because its name
//     stays taken until MinHold has passed since the run began.
//   - An outage shorter than half of MinHold, 1 s at least and 30 s at most, does not cost a tick:
//     [Locker.Lock] tries again for so long. If half of MinHold is less than 1 s, as by default, a
//     tick may run twice in an outage.
//   - If a replica dies during a run, others run the job again once its lease has ended.
//   - Over one Locker, a run of a job does not begin until the previous run has ended, even after
//     the loss of its lock.
//   - After a lease has ended, Elector.IsLeader never returns nil, even if no packet came back or
//     the process was frozen meanwhile.
//
// # What is not guaranteed
//
//   - That a run stops when its lock is lost. gocron's Lock has no signal for that, and the ctx of
//     a job ends only when the job is removed or its scheduler shuts down. To be stopped, a run
//     takes its ctx from [Locker.Held] or [Elector.Context]. Writes that must not be late need the
//     fencing token: Config.Fenced and Held(name).Fence(), or [Elector.Term].
//   - That each tick runs. A longer outage, or the death of a replica during a run, can cost one.
//     So can a quorum (strategies/redlock): replicas that reach the tick at the same moment may get
//     some servers each, and none the lock. gocron does not make up for skipped runs.
//   - Anything about a replica suspended between its tick and the call of Lock. It reaches the tick
//     late.
//   - That a tick runs once while the leadership passes on. Replicas with different clocks can both
//     run it, or none. If this matters, use a Locker.
//   - That the Elector stops jobs. See [Elector.Close] for the order of a shutdown.
//
// # What can be observed
//
// gocron hands the errors of Lock to its AfterLockError listeners, and counts the run as skipped
// (gocron.Monitor). Skipped runs are normal: all replicas but one skip each tick. errors.Is(err,
// locker.ErrNotAcquired) tells them from an outage; see the example of [Locker.Lock]. gocron drops
// the errors of Unlock, and those of IsLeader. An AfterJobRuns listener can ask [Locker.Held]
// whether the run kept its lock. Put middleware/logging, metrics and tracing around the Locker for
// New and NewElector: they report lost locks, outages and how long runs hold the lock.
//
// [gocron]: https://pkg.go.dev/github.com/go-co-op/gocron/v2
package gocronlock

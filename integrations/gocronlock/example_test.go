package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	gocronlock "github.com/holdfast-go/holdfast/integrations/gocronlock"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// locksOf returns a replica's Locker. In a program it is holdfast.New over a driver, for example of
// goredis.New.
func locksOf(server *lockertest.Locker) locker.Locker {
	return locker.Must(holdfast.Wrap(server, holdfast.Config{}))
}

// Three replicas reach the tick of an instant job, and one of them runs it.
func Example() {
	server := lockertest.New()
	outcomes := make(chan string)
	for range 3 {
		locks := locker.Must(gocronlock.New(locksOf(server), gocronlock.Config{
			MinHold: 10 * time.Second, // the clocks differ by less than half of that
		}))
		s := locker.Must(gocron.NewScheduler(gocron.WithDistributedLocker(locks)))
		defer s.Shutdown() //nolint:errcheck // an example
		locker.Must(s.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), // or a CronJob("* * * * *", false)
			gocron.NewTask(func() {}),
			gocron.WithName("report"), // the name of the lock
			gocron.WithEventListeners(
				gocron.AfterJobRuns(func(_ uuid.UUID, name string) { outcomes <- "ran " + name }),
				gocron.AfterLockError(func(uuid.UUID, string, error) { outcomes <- "skipped" }),
			),
		))
		s.Start()
	}
	for range 3 {
		fmt.Println(<-outcomes)
	}
	// Unordered output:
	// ran report
	// skipped
	// skipped
}

// A job with rare ticks has a Locker with a longer MinHold.
func ExampleNew() {
	l := locksOf(lockertest.New())
	minutely := locker.Must(gocronlock.New(l, gocronlock.Config{Prefix: "cron:", MinHold: 10 * time.Second}))
	daily := locker.Must(gocronlock.New(l, gocronlock.Config{Prefix: "cron:", MinHold: time.Hour}))

	s := locker.Must(gocron.NewScheduler(gocron.WithDistributedLocker(minutely)))
	defer s.Shutdown() //nolint:errcheck // an example
	locker.Must(s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(func() {}), gocron.WithName("poll")))
	locker.Must(s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func() {}), gocron.WithName("report"),
		gocron.WithDistributedJobLocker(daily)))
	fmt.Println(len(s.Jobs()), "jobs")
	// Output: 2 jobs
}

// A listener tells why a run was skipped: another replica runs the job, or the server is out of
// reach.
func ExampleLocker_Lock() {
	server := lockertest.New()
	locks := locker.Must(gocronlock.New(locksOf(server), gocronlock.Config{}))
	s := locker.Must(gocron.NewScheduler(gocron.WithDistributedLocker(locks)))
	defer s.Shutdown() //nolint:errcheck // an example
	skipped := make(chan string)
	job := locker.Must(s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func() {}), gocron.WithName("report"),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, name string, err error) {
			held, ok := errors.AsType[*locker.ContentionError](err)
			switch {
			case ok:
				skipped <- name + " is run by " + held.Note
			case errors.Is(err, locker.ErrNotAcquired):
				skipped <- name + " still runs here"
			default: // count and log this one
				skipped <- "nobody knows whether another replica runs " + name
			}
		})),
	))
	s.Start()

	other := server.Hold(locker.Request{Name: "report", Note: "host-2"})
	fmt.Println(job.RunNow())
	fmt.Println(<-skipped)

	_ = other.Release(context.Background())
	server.SetOutage(lockertest.Refused)
	fmt.Println(job.RunNow())
	fmt.Println(<-skipped)
	// Output:
	// <nil>
	// report is run by host-2
	// <nil>
	// nobody knows whether another replica runs report
}

// gocron does not tell a run of the loss of its lock. Held does, and has the fencing token.
func ExampleLocker_Held() {
	server := lockertest.New()
	locks := locker.Must(gocronlock.New(locksOf(server), gocronlock.Config{Fenced: true}))
	s := locker.Must(gocron.NewScheduler(gocron.WithDistributedLocker(locks)))
	defer s.Shutdown() //nolint:errcheck // an example
	ended := make(chan struct{})
	locker.Must(s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func(ctx context.Context) {
		defer close(ended)
		lock := locks.Held("report") // first of all
		ctx, cancel := lock.Context(ctx)
		defer cancel()
		fmt.Println("writes with token", lock.Fence())
		server.Expire("report") // as the end of the lease would, after an outage
		<-ctx.Done()
		fmt.Println("lost:", errors.Is(context.Cause(ctx), locker.ErrLost))
	}), gocron.WithName("report")))
	s.Start()
	<-ended
	// Output:
	// writes with token 1
	// lost: true
}

// One replica runs all jobs of its scheduler.
func ExampleElector() {
	leads := make(chan int64, 1)
	elector := locker.Must(gocronlock.NewElector(locksOf(lockertest.New()), leader.Config{
		Name: "cron", Note: "host-1",
		Lead: func(ctx context.Context, term int64) error { // optional
			leads <- term
			<-ctx.Done()
			return ctx.Err()
		},
	}))
	ended := make(chan error)
	go func() { ended <- elector.Run(context.Background()) }()

	s := locker.Must(gocron.NewScheduler(gocron.WithDistributedElector(elector)))
	ran := make(chan string)
	job := locker.Must(s.NewJob(gocron.DurationJob(time.Hour), gocron.NewTask(func(ctx context.Context) {
		ctx, cancel := elector.Context(ctx) // ends with the leadership
		defer cancel()
		ran <- fmt.Sprint("ran; ended: ", ctx.Err())
	})))
	s.Start()
	fmt.Println("leads in term", <-leads)
	fmt.Println(job.RunNow())
	fmt.Println(<-ran)

	fmt.Println(s.Shutdown()) // waits for running jobs
	elector.Close()           // another replica leads now
	fmt.Println(<-ended)
	// Output:
	// leads in term 1
	// <nil>
	// ran; ended: <nil>
	// <nil>
	// <nil>
}

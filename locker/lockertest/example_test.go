package lockertest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// report is the program under test: one process at a time writes the report.
func report(ctx context.Context, locks locker.Locker) (written bool, err error) {
	return locker.Try(ctx, locks, locker.Request{Name: "report"}, func(ctx context.Context, _ *locker.Lock) error {
		for range 3 {
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("stopped writing: %w", err)
			}
		}
		return nil
	})
}

// A program with a locker.Locker is tested without Redis.
func Example() {
	locks := lockertest.New()
	fmt.Println(report(context.Background(), locks))
	// Output: true <nil>
}

// What does the program do while another process holds the lock?
func ExampleLocker_Hold() {
	ctx, locks := context.Background(), lockertest.New()
	other := locks.Hold(locker.Request{Name: "report", Owner: "worker-2"})
	fmt.Println(report(ctx, locks))
	fmt.Println(other.Release(ctx))
	fmt.Println(report(ctx, locks))
	// Output:
	// false <nil>
	// <nil>
	// true <nil>
}

// What does the program do when it loses the lock halfway?
func ExampleLocker_Expire() {
	ctx, locks := context.Background(), lockertest.New()
	err := locker.Do(ctx, locks, locker.Request{Name: "report"}, func(ctx context.Context, _ *locker.Lock) error {
		locks.Expire("report")
		<-ctx.Done()
		return nil
	})
	fmt.Println(errors.Is(err, locker.ErrLost))
	// Output: true
}

// What does the program do when the server lost its data, and a renewal finds out?
func ExampleLocker_Forget() {
	ctx, locks := context.Background(), lockertest.New()
	lock := locker.Must(locks.Acquire(ctx, locker.Request{Name: "report"}))
	locks.Forget("report")
	fmt.Println(lock.Err())
	fmt.Println(lock.Renew(ctx, 0))
	// Output:
	// <nil>
	// holdfast: renew "report": lock was lost: its key was gone at the renewal (ended by Break, deleted, expired, or the server lost its data)
}

// What does the program do when the server cannot be reached?
func ExampleLocker_FailAcquire() {
	locks := lockertest.New()
	locks.FailAcquire(errors.New("connection refused"))
	fmt.Println(report(context.Background(), locks))
	// Output: false holdfast: acquire "report": connection refused
}

// An unanswered renewal leaves the lease as it was.
func ExampleLocker_FailRenew() {
	ctx, locks := context.Background(), lockertest.New()
	lock := locker.Must(locks.Acquire(ctx, locker.Request{Name: "report", TTL: time.Minute}))
	before := lock.Deadline()
	locks.FailRenew(locker.ErrUnknownOutcome)
	fmt.Println(lock.Renew(ctx, time.Hour))
	fmt.Println(lock.Err(), lock.Deadline().Equal(before))
	// Output:
	// holdfast: renew "report": outcome is unknown
	// <nil> true
}

// An unanswered release may have left the name held until its lease ends.
func ExampleLocker_FailRelease() {
	locks := lockertest.New()
	locks.FailRelease(locker.ErrUnknownOutcome)
	fmt.Println(report(context.Background(), locks))
	fmt.Println(report(context.Background(), locks))
	// Output:
	// true holdfast: release "report": outcome is unknown
	// false <nil>
}

// Inspect shows a test the holder.
func ExampleLocker_Inspect() {
	ctx, locks := context.Background(), lockertest.New()
	for _, reader := range []string{"r1", "r2"} {
		locker.Must(locks.Acquire(ctx, locker.Request{Name: "config", Mode: locker.Shared, Owner: reader}))
	}
	state := locker.Must(locks.Inspect(ctx, "config"))
	fmt.Println(state.Held, state.Mode, state.Holds, state.Owner)
	// Output: true shared 2 r1
}

// billing is the service under test. It writes invoices as long as it has the lock.
type billing struct {
	locks   locker.Locker
	stopped time.Time
}

func (b *billing) run(ctx context.Context) error {
	return locker.Do(ctx, b.locks, locker.Request{Name: "billing", TTL: 30 * time.Second}, func(ctx context.Context, _ *locker.Lock) error {
		<-ctx.Done() // writes invoices
		b.stopped = time.Now()
		return context.Cause(ctx)
	})
}

// What does a service do when the server cannot be reached for longer than its lease lasts?
func ExampleLocker_SetOutage() {
	synctest.Test(new(testing.T), func(*testing.T) { // in a test: its own t
		locks := lockertest.New()
		chain, err := holdfast.Wrap(locks, holdfast.Config{}) // renews and waits, as in production
		if err != nil {
			fmt.Println(err)
			return
		}
		service := &billing{locks: chain}
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- service.run(ctx) }()
		time.Sleep(time.Minute)
		fmt.Println("renewed after a minute:", locker.Must(locks.Inspect(ctx, "billing")).Held)

		begin := time.Now()
		locks.SetOutage(lockertest.Silent)
		fmt.Println("lost:", errors.Is(<-ended, locker.ErrLost))
		fmt.Println("stopped within the TTL:", service.stopped.Sub(begin) <= 30*time.Second)

		locks.SetOutage(lockertest.NoOutage)
		go func() { ended <- service.run(ctx) }()
		synctest.Wait()
		fmt.Println("works again:", locker.Must(locks.Inspect(ctx, "billing")).Held)
		stop()
		<-ended
	})
	// Output:
	// renewed after a minute: true
	// lost: true
	// stopped within the TTL: true
	// works again: true
}

// A cron job runs on three replicas with different clocks. MinHold makes it run once per tick.
func Example_cronJob() {
	synctest.Test(new(testing.T), func(*testing.T) { // in a test: its own t
		locks := lockertest.New()
		var runs atomic.Int32
		replica := func(late time.Duration) {
			time.Sleep(late)
			for range 6 {
				_, err := locker.Try(context.Background(), locks, locker.Request{Name: "nightly", TTL: time.Minute, MinHold: 30 * time.Second},
					func(context.Context, *locker.Lock) error {
						runs.Add(1)
						time.Sleep(20 * time.Millisecond)
						return nil
					})
				if err != nil {
					fmt.Println(err)
				}
				time.Sleep(time.Hour)
			}
		}
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { replica(time.Duration(i) * 60 * time.Millisecond) })
		}
		all.Wait()
		fmt.Println(runs.Load(), "runs in 6 ticks")
	})
	// Output: 6 runs in 6 ticks
}

// A leader that stops hands over to the next candidate, and a term never has two leaders.
func Example_leaderHandOver() {
	synctest.Test(new(testing.T), func(*testing.T) { // in a test: its own t
		locks := lockertest.New()
		campaign := func(note string) (stop func()) {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error)
			chain, err := holdfast.Wrap(locks, holdfast.Config{}) // each candidate is a process
			if err != nil {
				fmt.Println(err)
			}
			go func() {
				ended <- leader.Run(ctx, chain, leader.Config{Name: "scheduler", Note: note, Lead: func(ctx context.Context, term int64) error {
					fmt.Println(note, "leads term", term)
					<-ctx.Done()
					return nil
				}})
			}()
			synctest.Wait()
			return func() {
				cancel()
				if err := <-ended; err != nil {
					fmt.Println(err)
				}
				synctest.Wait()
			}
		}
		stopFirst := campaign("first")
		stopSecond := campaign("second")
		stopFirst()
		stopSecond()
		for _, call := range locks.Calls() {
			if call.Op == "release" {
				fmt.Println(call)
			}
		}
	})
	// Output:
	// first leads term 1
	// second leads term 2
	// release "scheduler": ok
	// release "scheduler": ok
}

// What did the program ask for?
func ExampleLocker_Calls() {
	locks := lockertest.New()
	locks.Hold(locker.Request{Name: "report", Owner: "worker-2"})
	_, _ = report(context.Background(), locks)
	locks.Expire("report")
	_, _ = report(context.Background(), locks)
	for _, call := range locks.Calls() {
		fmt.Println(call.Op, call.Request.Name, call.Err == nil)
	}
	// Output:
	// acquire report false
	// acquire report true
	// release report true
}

// At most three downloads at a time, and a large one counts twice.
func ExampleNewSemaphore() {
	ctx, permits := context.Background(), lockertest.NewSemaphore(3)
	large := locker.Must(permits.Acquire(ctx, locker.Request{Name: "downloads", Permits: 2}))
	locker.Must(permits.Acquire(ctx, locker.Request{Name: "downloads"}))
	_, err := permits.Acquire(ctx, locker.Request{Name: "downloads"})
	fmt.Println(errors.Is(err, locker.ErrNotAcquired))
	fmt.Println(large.Release(ctx))
	fmt.Println(locker.Must(permits.Inspect(ctx, "downloads")).Free)
	// Output:
	// true
	// <nil>
	// 2
}

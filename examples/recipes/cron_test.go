package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// oncePerTick runs a job at each interval, unless another replica runs it or has begun it within
// half an interval.
func oncePerTick(
	ctx context.Context, l locker.Locker, job string, every time.Duration, run func(context.Context) error,
) error {
	_, err := locker.Try(ctx, l, locker.Request{
		Name:    "cron:" + job,
		MinHold: every / 2, // late replicas find the name taken, and the next tick finds it free
	}, func(ctx context.Context, _ *locker.Lock) error {
		return run(ctx) // may take longer than MinHold: the watchdog renews the lock
	})
	return err
}

// Three replicas of a service fire at the same tick. One of them runs the job, even if the others
// come after it has finished.
func Example_cronOncePerTick() {
	b := connect()
	defer b.close()
	l := locker.Must(holdfast.New(b.driver, holdfast.Config{}))

	for tick := range 3 {
		for replica := range 3 { // one after another: their clocks differ by more than the job takes
			err := oncePerTick(context.Background(), l, "report", time.Hour, func(context.Context) error {
				fmt.Printf("replica %d runs the job of tick %d\n", replica, tick)
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		}
		b.server.FastForward(time.Hour) // until the next tick
	}
	// Output:
	// replica 0 runs the job of tick 0
	// replica 0 runs the job of tick 1
	// replica 0 runs the job of tick 2
}

// onceForTick runs a job unless another replica has begun it for this tick, however late this one
// is. l must be a bare strategy: a watchdog would renew the unreleased lock for the life of the
// process.
func onceForTick(ctx context.Context, l locker.Locker, job string, tick time.Time, run func(context.Context) error) error {
	lock, err := l.Acquire(ctx, locker.Request{
		Name:   "cron:" + job + ":" + tick.UTC().Format(time.RFC3339), // the tick is part of the name
		TTL:    time.Hour,                                             // longer than clocks differ and the job takes
		NoWait: true,
	})
	if errors.Is(err, locker.ErrNotAcquired) {
		return nil // another replica runs it, or has run it
	}
	if err != nil {
		return err
	}
	work, cancel := lock.Context(ctx)
	defer cancel()
	return run(work) // no Release: a replica with a late clock must find the lock held
}

// Replicas that know their tick may be late by a whole tick.
func Example_cronTickInTheName() {
	b := connect()
	defer b.close()
	l := locker.Must(single.New(b.driver, single.Config{}))

	three := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	four := three.Add(time.Hour)
	for replica, tick := range []time.Time{three, four, three} { // the last one is late
		err := onceForTick(context.Background(), l, "report", tick, func(context.Context) error {
			fmt.Printf("replica %d makes the report of %s\n", replica, tick.Format(time.Kitchen))
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// replica 0 makes the report of 3:00AM
	// replica 1 makes the report of 4:00AM
}

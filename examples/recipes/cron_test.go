package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// oncePerTick runs a job unless another instance has begun it for this tick. l must be a bare
// strategy: a watchdog would renew the lock, which is not released, for as long as the process
// lives.
func oncePerTick(ctx context.Context, l locker.Locker, job string, tick time.Time, run func(context.Context) error) error {
	lock, err := l.Acquire(ctx, locker.Request{
		Name:   "cron:" + job + ":" + tick.UTC().Format(time.RFC3339), // the tick is part of the name
		TTL:    time.Hour,                                             // longer than clocks differ and the job takes
		NoWait: true,
	})
	if errors.Is(err, locker.ErrNotAcquired) {
		return nil // another instance runs it, or has run it
	}
	if err != nil {
		return err
	}
	work, cancel := lock.Context(ctx)
	defer cancel()
	return run(work) // no Release: an instance whose clock is late must find the lock held
}

// Three instances of a service fire at the same tick. One of them runs the job, even if the others
// come after it has finished.
func Example_cronOncePerTick() {
	b := connect()
	defer b.close()
	l := locker.Must(single.New(b.driver, single.Config{}))

	three := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for _, tick := range []time.Time{three, three.Add(time.Hour)} {
		for instance := range 3 {
			err := oncePerTick(context.Background(), l, "report", tick, func(context.Context) error {
				fmt.Printf("instance %d makes the report of %s\n", instance, tick.Format(time.Kitchen))
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// instance 0 makes the report of 3:00AM
	// instance 0 makes the report of 4:00AM
}

package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// bootEpoch returns the zero of the machine's monotonic clock, as a time.Time of this process. It
// gives all processes of a machine one clock, unaffected by steps of the wall clock.
func bootEpoch() (time.Time, error) {
	var epoch time.Time
	best := time.Duration(math.MaxInt64)
	for range 50 {
		before := time.Now()
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return time.Time{}, fmt.Errorf("reading CLOCK_MONOTONIC: %w", err)
		}
		if took := time.Since(before); took < best {
			best = took
			epoch = before.Add(took / 2).Add(-time.Duration(ts.Nano()))
		}
	}
	return epoch, nil
}

// pause waits for d or until ctx ends, and reports whether d has passed.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

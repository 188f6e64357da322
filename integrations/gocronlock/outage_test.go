//realtime:ok each test runs in a bubble, by bubble of main_test.go

//nolint:forbidigo // fake time
package gocronlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	gocronlock "github.com/holdfast-go/holdfast/integrations/gocronlock"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// An outage shorter than half of MinHold costs no tick. A longer one does, is told from contention,
// and is over at the next tick.
func TestOutage(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		outage  lockertest.Outage
		minHold time.Duration
		after   time.Duration // the tick
		runs    bool
	}{
		{"refused, short", lockertest.Refused, 20 * time.Second, 9 * time.Second, true},
		{"refused, long", lockertest.Refused, 20 * time.Second, 11 * time.Second, false},
		{"refused, a short MinHold", lockertest.Refused, time.Millisecond, 850 * time.Millisecond, true},
		{"refused, a long MinHold", lockertest.Refused, 2 * time.Minute, 31 * time.Second, false},
		{"silent, short", lockertest.Silent, 20 * time.Second, 9 * time.Second, true},
		{"silent, long", lockertest.Silent, 20 * time.Second, 11 * time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker) {
				locks := locker.Must(gocronlock.New(process(server), gocronlock.Config{MinHold: tt.minHold}))
				s := newScheduler(t, gocron.WithDistributedLocker(locks))
				ran := make(chan time.Time, 10)
				listener, skipped := lockErrors()
				newJob(t, s, gocron.CronJob("*/5 * * * *", false), func() { ran <- time.Now() }, listener)
				server.SetOutage(tt.outage)
				time.Sleep(5*time.Minute + tt.after) // it is midnight
				server.SetOutage(lockertest.NoOutage)
				time.Sleep(time.Minute)
				errs := skipped()
				if tt.runs {
					if len(ran) != 1 || len(errs) > 0 {
						t.Errorf("%d runs, skipped for %v", len(ran), errs)
					}
				} else if len(ran) != 0 || len(errs) != 1 || errors.Is(errs[0], locker.ErrNotAcquired) || !driver.Transient(errs[0]) {
					t.Errorf("%d runs, skipped for %v", len(ran), errs)
				}
				time.Sleep(4 * time.Minute)
				if errs := skipped(); len(errs) > 0 || len(ran) == 0 {
					t.Errorf("at the next tick: %d runs, skipped for %v", len(ran), errs)
				}
			})
		})
	}
}

// An error is returned at once if another attempt would only repeat it.
func TestAttempts(t *testing.T) {
	t.Parallel()
	refused := errors.New("connection refused")
	tests := []struct {
		name  string
		err   error
		again bool
	}{
		{"transient", refused, true},
		{"contention", &locker.ContentionError{Name: "report"}, false},
		{"permanent", driver.Permanent(refused), false},
		{"closed", locker.ErrClosed, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker) {
				server.FailAcquire(tt.err)
				locks := locker.Must(gocronlock.New(server, gocronlock.Config{}))
				lock, err := locks.Lock(t.Context(), "report")
				if tt.again {
					check.Must(t, err)
					_ = lock.Unlock(t.Context())
				} else if !errors.Is(err, tt.err) {
					t.Errorf("%v, want %v", err, tt.err)
				}
			})
		})
	}
}

// The end of the job's ctx ends the attempts.
func TestOutageEndsWithTheJob(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		locks := locker.Must(gocronlock.New(server, gocronlock.Config{MinHold: 20 * time.Second}))
		for _, outage := range []lockertest.Outage{lockertest.Refused, lockertest.Silent} {
			server.SetOutage(outage)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			begin := time.Now()
			if lock, err := locks.Lock(ctx, "report"); lock != nil || err == nil || errors.Is(err, locker.ErrNotAcquired) {
				t.Errorf("%v: %v, %v", outage, lock, err)
			}
			check.AtMost(t, fmt.Sprint(outage, ": time"), time.Since(begin), 3100*time.Millisecond)
			cancel()
		}
	})
}

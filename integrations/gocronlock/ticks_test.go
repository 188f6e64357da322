//nolint:forbidigo // fake time
package gocronlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	gocronlock "github.com/holdfast-go/holdfast/integrations/gocronlock"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// Three replicas whose clocks differ run a job shorter than the difference.
func TestTicks(t *testing.T) {
	t.Parallel()
	// A definition belongs to one scheduler.
	minutely := func() gocron.JobDefinition { return gocron.CronJob("* * * * *", false) }
	everyMinute := func() gocron.JobDefinition { return gocron.DurationJob(time.Minute) }
	tests := []struct {
		name    string
		when    func() gocron.JobDefinition
		stagger time.Duration // between the starts of the replicas
		differ  time.Duration // the replicas' clocks
		minHold time.Duration
		runs    int // in each minute
	}{
		{"MinHold", minutely, 0, 4 * time.Second, 10 * time.Second, 1},
		{"the default", minutely, 0, 200 * time.Millisecond, 0, 1},
		{"no MinHold", minutely, 0, 4 * time.Second, time.Millisecond, 3},
		{"MinHold is too short", minutely, 0, 4 * time.Second, 3 * time.Second, 2},
		{"durations", everyMinute, 17 * time.Second, 0, 54 * time.Second, 1},
		{"durations, the default", everyMinute, 17 * time.Second, 0, 0, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *lockertest.Locker) {
				const half, minutes = 30 * time.Second, 60
				begin := time.Now() // at midnight
				time.Sleep(half)
				var mu sync.Mutex
				var runs [minutes]int
				job := func() {
					mu.Lock()
					defer mu.Unlock()
					runs[(time.Since(begin)-half)/time.Minute]++
					time.Sleep(20 * time.Millisecond)
				}
				var replicas []gocron.Scheduler
				for i := range 3 {
					locks := locker.Must(gocronlock.New(process(server), gocronlock.Config{MinHold: tt.minHold}))
					s := newScheduler(t, gocron.WithDistributedLocker(locks), clockThatDiffers(time.Duration(i-1)*tt.differ/2))
					newJob(t, s, tt.when(), job)
					replicas = append(replicas, s)
					time.Sleep(tt.stagger)
				}
				time.Sleep(time.Until(begin.Add(minutes*time.Minute + half - time.Second)))
				for _, s := range replicas {
					check.OK(t, s.Shutdown())
				}
				mu.Lock()
				defer mu.Unlock()
				for minute, n := range runs[1:] {
					check.Equal(t, fmt.Sprintf("runs in minute %d", minute+1), n, tt.runs)
				}
			})
		})
	}
}

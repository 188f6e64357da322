package gocronlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f in fake time, with a server in memory.
func bubble(t *testing.T, f func(t *testing.T, server *lockertest.Locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, lockertest.New()) })
}

// skewed is a clock with an offset from the others.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func (c skewed) Now() time.Time { return c.Clock.Now().Add(c.by) }

func clockThatDiffers(by time.Duration) gocron.SchedulerOption {
	return gocron.WithClock(skewed{clockwork.NewRealClock(), by})
}

// process returns the Locker of a separate process over the server: it waits and renews.
func process(server *lockertest.Locker) locker.Locker {
	return locker.Must(holdfast.Wrap(server, holdfast.Config{}))
}

// newScheduler returns a started scheduler. It is shut down at the end of the test.
func newScheduler(t *testing.T, options ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s := locker.Must(gocron.NewScheduler(options...))
	t.Cleanup(func() { _ = s.Shutdown() }) // again, if the test did
	s.Start()
	return s
}

func newJob(t *testing.T, s gocron.Scheduler, when gocron.JobDefinition, task any, options ...gocron.JobOption) gocron.Job {
	t.Helper()
	j := locker.Must(s.NewJob(when, gocron.NewTask(task), append([]gocron.JobOption{gocron.WithName("report")}, options...)...))
	return j
}

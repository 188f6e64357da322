package gocronlock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	gocronlock "github.com/holdfast-go/holdfast/integrations/gocronlock"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

// patience bounds a test's waits.
const patience = time.Minute

// connect returns the Locker of a separate process over a real server.
func connect(t *testing.T, server *redistest.Server) locker.Locker {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() {
		_ = drv.Close()
		_ = client.Close()
	})
	return locker.Must(holdfast.New(drv, holdfast.Config{}))
}

func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: nothing happened in %v", what, patience)
		panic("not reached")
	}
}

// Three replicas reach a tick one after another, each after the run of the one before has ended,
// since their clocks differ: MinHold lets one run the job.
func TestTicksOverRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	runs := 0
	for i := range 3 {
		clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 30, 0, time.UTC))
		locks := locker.Must(gocronlock.New(connect(t, server), gocronlock.Config{MinHold: time.Hour}))
		s := newScheduler(t, gocron.WithDistributedLocker(locks), gocron.WithClock(clock))
		ended := make(chan error, 1)
		newJob(t, s, gocron.CronJob("* * * * *", false), func() {}, gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { ended <- nil }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { ended <- err }),
		))
		check.Must(t, clock.BlockUntilContext(t.Context(), 1))
		clock.Advance(30 * time.Second)
		switch err := receive(t, "the tick", ended); {
		case err == nil:
			runs++
		case i == 0 || !errors.Is(err, locker.ErrNotAcquired):
			t.Errorf("replica %d: %v", i, err)
		}
		if err := s.Shutdown(); err != nil { // waits for Unlock
			t.Error(err)
		}
	}
	check.Equal(t, "runs", runs, 1)
}

//nolint:forbidigo // fake time
package gocronlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	gocronlock "github.com/holdfast-go/holdfast/integrations/gocronlock"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestNew(t *testing.T) {
	t.Parallel()
	type test struct {
		l    locker.Locker
		cfg  gocronlock.Config
		what string // names the bad argument; "": none
	}
	check.Each(t, map[string]test{
		"the zero Config":           {lockertest.New(), gocronlock.Config{}, ""},
		"all fields":                {lockertest.New(), gocronlock.Config{Prefix: "cron:", MinHold: time.Second, TTL: time.Second, Fenced: true, Note: "a"}, ""},
		"a semaphore of one permit": {lockertest.NewSemaphore(1), gocronlock.Config{}, ""},
		"no Locker":                 {nil, gocronlock.Config{}, "gocronlock.New locker"},
		"a semaphore":               {lockertest.NewSemaphore(2), gocronlock.Config{}, "gocronlock.New locker"},
		"MinHold below zero":        {lockertest.New(), gocronlock.Config{MinHold: -1}, "Request.MinHold"},
		"MinHold too long":          {lockertest.New(), gocronlock.Config{MinHold: locker.MaxTTL + time.Hour}, "Request.MinHold"},
		"TTL below zero":            {lockertest.New(), gocronlock.Config{TTL: -1}, "Request.TTL"},
		"TTL below MinHold":         {lockertest.New(), gocronlock.Config{TTL: time.Second, MinHold: time.Minute}, "Request.MinHold"},
		"a long prefix":             {lockertest.New(), gocronlock.Config{Prefix: strings.Repeat("a", locker.MaxNameLen)}, "Request.Name"},
		"a long note":               {lockertest.New(), gocronlock.Config{Note: strings.Repeat("a", locker.MaxNameLen+1)}, "Request.Note"},
	}, func(t *testing.T, tt test) {
		l, err := gocronlock.New(tt.l, tt.cfg)
		if tt.what == "" {
			check.OK(t, err)
			return
		}
		bad, ok := errors.AsType[*locker.InvalidError](err)
		if !ok || bad.What != tt.what || l != nil {
			t.Errorf("%v, %v; want an InvalidError about %s", l, err, tt.what)
		}
	})
}

func TestLockArguments(t *testing.T) {
	t.Parallel()
	l := locker.Must(gocronlock.New(lockertest.New(), gocronlock.Config{}))
	for _, key := range []string{"", "report:fence", strings.Repeat("a", locker.MaxNameLen+1)} {
		if lock, err := l.Lock(t.Context(), key); lock != nil || !errors.Is(err, locker.ErrInvalid) {
			t.Errorf("%.20q: %v, %v", key, lock, err)
		}
	}
	if lock, err := l.Lock(nil, "report"); lock != nil || !errors.Is(err, locker.ErrInvalid) { //nolint:staticcheck // nil is the case
		t.Errorf("nil ctx: %v, %v", lock, err)
	}
}

// The requests to the Locker.
func TestRequest(t *testing.T) {
	t.Parallel()
	server := lockertest.New()
	l := locker.Must(gocronlock.New(server, gocronlock.Config{
		Prefix: "cron:", MinHold: 40 * time.Second, TTL: time.Minute, Fenced: true, Note: "host-1",
	}))
	lock := locker.Must(l.Lock(locker.WithOwner(t.Context(), "the program"), "report"))
	req := server.Calls()[0].Request
	if req.Owner == "" || req.Owner == "the program" {
		t.Errorf("owner %q, want one of its own for each run", req.Owner)
	}
	if req.Name != "cron:report" || req.MinHold != 40*time.Second || req.TTL != time.Minute || !req.Fenced || req.Note != "host-1" || !req.NoWait {
		t.Errorf("%+v", req)
	}
	check.Within(t, "MaxWait, half of MinHold", req.MaxWait, 10*time.Second+1, 20*time.Second)
	if got := l.Held("report"); got.Fence() != 1 || got.Name() != "cron:report" {
		t.Errorf("Held: %v", got)
	}
	check.OK(t, lock.Unlock(t.Context()))
	check.Equal(t, "Held after Unlock", l.Held("report"), nil)
	state, err := locker.Inspect(t.Context(), server, "cron:report")
	if err != nil || !state.Held || state.Holds != 0 {
		t.Errorf("MinHold: %+v, %v", state, err)
	}
}

// lockErrors returns a listener for the errors of Lock, and a function that returns those so far.
func lockErrors() (gocron.JobOption, func() []error) {
	got := make(chan error, 1000)
	return gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { got <- err })),
		func() (errs []error) {
			for len(got) > 0 {
				errs = append(errs, <-got)
			}
			return errs
		}
}

// A run learns of the loss of its lock from Held alone. Another replica runs the job meanwhile,
// this one not before the run has ended.
func TestLostLock(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		locks := locker.Must(gocronlock.New(process(server), gocronlock.Config{}))
		other := locker.Must(gocronlock.New(process(server), gocronlock.Config{}))
		if ctx, cancel := locks.Held("report").Context(t.Context()); !errors.Is(context.Cause(ctx), locker.ErrNotHeld) {
			t.Errorf("no run: %v", context.Cause(ctx))
		} else {
			cancel()
		}
		began, stopped, goOn := make(chan struct{}, 10), make(chan error, 10), make(chan struct{})
		job := func(ctx context.Context) {
			held, cancel := locks.Held("report").Context(ctx)
			defer cancel()
			began <- struct{}{}
			<-held.Done()
			check.Error(t, "ctx of the job: gocron has a signal", ctx.Err())
			stopped <- context.Cause(held)
			<-goOn
		}
		s := newScheduler(t, gocron.WithDistributedLocker(locks))
		listener, skipped := lockErrors()
		kept := make(chan error, 10)
		after := gocron.WithEventListeners(gocron.AfterJobRuns(func(_ uuid.UUID, name string) { kept <- locks.Held(name).Err() }))
		j := newJob(t, s, gocron.DurationJob(24*time.Hour), job, listener, after)
		check.Must(t, j.RunNow())
		<-began
		check.Error(t, "the other replica", check.ErrOf(other.Lock(t.Context(), "report")), locker.ErrNotAcquired)
		server.Expire("report")
		check.Is(t, <-stopped, locker.ErrLost)
		lock := locker.Must(other.Lock(t.Context(), "report"))
		check.OK(t, lock.Unlock(t.Context()))
		time.Sleep(time.Minute) // beyond the MinHold of the other replica
		check.Must(t, j.RunNow())
		synctest.Wait()
		if errs := skipped(); len(errs) != 1 || !errors.Is(errs[0], locker.ErrNotAcquired) || !strings.Contains(errs[0].Error(), "earlier run") {
			t.Errorf("while the earlier run goes on, skipped for %v", errs)
		}
		close(goOn)
		check.Is(t, <-kept, locker.ErrLost)
		synctest.Wait()
		check.Must(t, j.RunNow())
		<-began
		server.Expire("report")
		<-stopped
	})
}

// A run leaves no lock behind if it shuts its scheduler down, or another does.
func TestShutdownReleases(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		locks := locker.Must(gocronlock.New(process(server), gocronlock.Config{MinHold: time.Millisecond}))
		s := newScheduler(t, gocron.WithDistributedLocker(locks))
		began := make(chan struct{})
		newJob(t, s, gocron.DurationJob(time.Hour), func(ctx context.Context) {
			close(began)
			<-ctx.Done()
		}, gocron.WithStartAt(gocron.WithStartImmediately()))
		<-began
		check.OK(t, s.Shutdown())
		state, err := locker.Inspect(t.Context(), server, "report")
		if err != nil || state.Holds != 0 {
			t.Errorf("after Shutdown: %+v, %v", state, err)
		}
		check.Equal(t, "Held after Shutdown", locks.Held("report"), nil)
	})
}

// Unlock is called once by gocron. A second call releases nothing, not even the lock of the next
// run.
func TestUnlockTwice(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		locks := locker.Must(gocronlock.New(server, gocronlock.Config{MinHold: time.Millisecond}))
		first := locker.Must(locks.Lock(t.Context(), "report"))
		check.OK(t, first.Unlock(t.Context()))
		time.Sleep(time.Second)
		second := locker.Must(locks.Lock(t.Context(), "report"))
		check.Is(t, first.Unlock(t.Context()), locker.ErrReleased)
		check.Error(t, "the next run, after the second Unlock", locks.Held("report").Err())
		server.Expire("report")
		check.Is(t, second.Unlock(t.Context()), locker.ErrLost)
	})
}

// A panic of the Locker leaves its key usable.
func TestLockPanics(t *testing.T) {
	t.Parallel()
	server := lockertest.New()
	calls := 0
	locks := locker.Must(gocronlock.New(lockerFunc(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		if calls++; calls == 1 {
			panic("a bug")
		}
		return server.Acquire(ctx, req)
	}), gocronlock.Config{}))
	func() {
		defer func() { _ = recover() }()
		_, _ = locks.Lock(t.Context(), "report")
	}()
	lock := locker.Must(locks.Lock(t.Context(), "report"))
	_ = lock.Unlock(t.Context())
}

type lockerFunc func(context.Context, locker.Request) (*locker.Lock, error)

func (f lockerFunc) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	return f(ctx, req)
}

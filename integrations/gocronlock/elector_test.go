//nolint:forbidigo // fake time
package gocronlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	gocronlock "github.com/holdfast-go/holdfast/integrations/gocronlock"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

func TestNewElector(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func() (*gocronlock.Elector, error){
		"no Locker": func() (*gocronlock.Elector, error) { return gocronlock.NewElector(nil, leader.Config{Name: "a"}) },
		"no Name":   func() (*gocronlock.Elector, error) { return gocronlock.NewElector(lockertest.New(), leader.Config{}) },
		"a semaphore": func() (*gocronlock.Elector, error) {
			return gocronlock.NewElector(lockertest.NewSemaphore(2), leader.Config{Name: "a"})
		},
	} {
		if e, err := build(); e != nil || !errors.Is(err, locker.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, e, err)
		}
	}
	server := lockertest.New()
	e := locker.Must(gocronlock.NewElector(server, leader.Config{Name: "a"}))
	if err := e.Run(nil); !errors.Is(err, locker.ErrInvalid) { //nolint:staticcheck // nil is the case
		t.Errorf("Run(nil): %v", err)
	}
	check.Is(t, e.IsLeader(t.Context()), locker.ErrNotHeld)
	e.Close()
	check.OK(t, e.Run(t.Context()))
	check.Equal(t, "calls after Close", len(server.Calls()), 0)
}

// replica is a scheduler with an Elector.
type replica struct {
	*gocronlock.Elector
	gocron.Scheduler
	ran chan context.Context // the ctx of the term, for each run
}

func newReplica(t *testing.T, server *lockertest.Locker) replica {
	t.Helper()
	e := locker.Must(gocronlock.NewElector(process(server), leader.Config{Name: "cron"}))
	r := replica{e, newScheduler(t, gocron.WithDistributedElector(e)), make(chan context.Context, 100)}
	newJob(t, r.Scheduler, gocron.CronJob("* * * * *", false), func(ctx context.Context) {
		ctx, cancel := e.Context(ctx)
		t.Cleanup(cancel)
		r.ran <- ctx
	})
	var running sync.WaitGroup
	running.Go(func() { check.OK(t, e.Run(t.Context())) })
	t.Cleanup(running.Wait)
	t.Cleanup(e.Close)
	return r
}

// One replica runs all jobs. When it shuts down, the next one leads at once.
func TestElectorShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		first := newReplica(t, server)
		synctest.Wait()
		second := newReplica(t, server)
		synctest.Wait()
		third := newReplica(t, server)
		time.Sleep(10*time.Minute + time.Second)
		if n, m, k := len(first.ran), len(second.ran), len(third.ran); n != 10 || m+k != 0 {
			t.Errorf("%d, %d and %d runs, want 10, 0 and 0", n, m, k)
		}
		before, leads := first.Term()
		if !leads || first.IsLeader(t.Context()) != nil {
			t.Errorf("term %d, %v", before, first.IsLeader(t.Context()))
		}
		check.OK(t, first.Shutdown())
		first.Close()
		first.Close()
		synctest.Wait()
		if _, leads := first.Term(); leads || first.IsLeader(t.Context()) == nil {
			t.Error("it leads after Close")
		}
		check.Error(t, "ctx of its term", context.Cause(<-first.ran), context.Canceled)
		late, cancel := first.Context(t.Context())
		check.Error(t, "ctx of no term", context.Cause(late), locker.ErrNotHeld)
		cancel()
		if after, leads := second.Term(); !leads || after <= before {
			t.Errorf("the next one: term %d, %t", after, leads)
		}
		time.Sleep(10 * time.Minute)
		if n, m, k := len(first.ran), len(second.ran), len(third.ran); n != 9 || m != 10 || k != 0 {
			t.Errorf("after the shutdown: %d, %d and %d runs, want 9, 10 and 0", n, m, k)
		}
	})
}

// An outage longer than the lease ends the leadership, and the ctx of the term with ErrLost.
func TestElectorOutage(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		r := newReplica(t, server)
		time.Sleep(time.Minute + time.Second)
		server.SetOutage(lockertest.Silent)
		time.Sleep(30*time.Second + time.Millisecond)
		if ctx := <-r.ran; r.IsLeader(t.Context()) == nil || !errors.Is(context.Cause(ctx), locker.ErrLost) {
			t.Errorf("after the lease: %v, ctx of the term: %v", r.IsLeader(t.Context()), context.Cause(ctx))
		}
		server.SetOutage(lockertest.NoOutage)
	})
}

// The caller's own Lead is called for each term. Its return ends the term.
func TestElectorLead(t *testing.T) {
	bubble(t, func(t *testing.T, server *lockertest.Locker) {
		terms := make(chan int64, 10)
		e := locker.Must(gocronlock.NewElector(process(server), leader.Config{
			Name: "cron",
			Lead: func(ctx context.Context, number int64) error {
				terms <- number
				if number == 3 {
					<-ctx.Done()
				}
				return errors.New("let another one try")
			},
		}))
		ended := make(chan error)
		go func() { ended <- e.Run(t.Context()) }()
		time.Sleep(time.Minute)
		if n, leads := e.Term(); n != 3 || !leads || len(terms) != 3 {
			t.Errorf("term %d, %t, %d calls", n, leads, len(terms))
		}
		e.Close()
		if state, err := locker.Inspect(t.Context(), server, "cron"); state.Held || err != nil {
			t.Errorf("after Close: %+v, %v", state, err)
		}
		check.Equal(t, "the error of Lead was dropped", <-ended == nil, false)
	})
}

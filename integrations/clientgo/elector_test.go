//nolint:forbidigo // fake time
package clientgo_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/integrations/clientgo"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
)

// pause is the longest pause of a LeaderElector between two attempts to acquire: RetryPeriod, and
// up to JitterFactor times RetryPeriod.
const pause = 22 * 2 * time.Second / 10

// chains are Lockers over one server.
var chains = map[string]func(*lockertest.Locker) locker.Locker{
	"a bare strategy": func(l *lockertest.Locker) locker.Locker { return l },
	"the usual chain": func(l *lockertest.Locker) locker.Locker {
		return locker.Must(holdfast.Wrap(l, holdfast.Config{}))
	},
}

// inFakeTime runs test for each chain, in parallel.
func inFakeTime(t *testing.T, test func(t *testing.T, server *lockertest.Locker, l locker.Locker)) {
	t.Helper()
	t.Parallel()
	check.EachInFakeTime(t, chains, func(t *testing.T, chain func(*lockertest.Locker) locker.Locker) {
		server := lockertest.New()
		test(t, server, chain(server))
	})
}

// between fails the test unless d is from least to most.
func between(t *testing.T, what string, d, least, most time.Duration) {
	t.Helper()
	if d < least || d > most {
		t.Errorf("%s takes %v, want %v to %v", what, d, least, most)
	}
}

func TestSuccession(t *testing.T) {
	inFakeTime(t, func(t *testing.T, _ *lockertest.Locker, l locker.Locker) {
		a := run(t, newLock(t, l, "a"), timing)
		first := a.leads(t)
		b := run(t, newLock(t, l, "b"), timing)
		time.Sleep(10 * time.Minute)
		if len(b.terms) > 0 || b.elector.GetLeader() != "a" || b.elector.IsLeader() || !a.elector.IsLeader() || first.ctx.Err() != nil {
			t.Fatalf("after 10 minutes the leader is %s, and the first term has ended with %v", b.elector.GetLeader(), context.Cause(first.ctx))
		}
		began := time.Now()
		a.stop()
		check.Is(t, first.hold.Err(), locker.ErrReleased)
		second := b.leads(t)
		between(t, "the succession", time.Since(began), 0, pause)
		if second.hold.Fence() <= first.hold.Fence() || b.elector.GetLeader() != "b" || a.lock.Held() != nil {
			t.Errorf("the holds are %v and %v, the leader is %s", first.hold, second.hold, b.elector.GetLeader())
		}
	})
}

// Without ReleaseOnCancel, others wait for the end of the lease, and nothing renews it meanwhile.
func TestStopWithoutRelease(t *testing.T) {
	inFakeTime(t, func(t *testing.T, _ *lockertest.Locker, l locker.Locker) {
		cfg := timing
		cfg.ReleaseOnCancel = false
		a := run(t, newLock(t, l, "a"), cfg)
		first := a.leads(t)
		b := run(t, newLock(t, l, "b"), cfg)
		time.Sleep(time.Minute)
		began := time.Now()
		a.stop()
		if first.hold.Err() == nil || a.lock.Held() != nil {
			t.Errorf("after the end of Run a holds %v", first.hold)
		}
		b.leads(t)
		between(t, "the succession", time.Since(began), cfg.LeaseDuration-cfg.LeaseDuration/3, cfg.LeaseDuration+pause)
	})
}

// The lock is not released while the work runs.
func TestReleaseWaitsForTheWork(t *testing.T) {
	t.Parallel()
	type test struct{ lasts, least, most time.Duration }
	check.EachInFakeTime(t, map[string]test{
		"the work ends soon": {5 * time.Second, 5 * time.Second, 5*time.Second + pause},
		"the work goes on":   {time.Hour, timing.LeaseDuration - timing.RetryPeriod, timing.LeaseDuration + pause},
	}, func(t *testing.T, tt test) {
		server := lockertest.New()
		a, leads := newLock(t, server, "a"), make(chan struct{})
		cfg := timing
		cfg.Lock = a
		cfg.Callbacks.OnStoppedLeading = func() {}
		cfg.Callbacks.OnStartedLeading = a.Lead(func(ctx context.Context, _ int64) {
			close(leads)
			<-ctx.Done()
			time.Sleep(tt.lasts)
		})
		ctx, stop := context.WithCancel(t.Context())
		go leaderelection.RunOrDie(ctx, cfg)
		wait(t, leads, "a leads")
		b := run(t, newLock(t, server, "b"), timing)
		time.Sleep(time.Minute)
		began := time.Now()
		stop()
		b.leads(t)
		between(t, "the succession", time.Since(began), tt.least, tt.most)
		time.Sleep(tt.lasts)
	})
}

// A deleted key ends the ctx of the hold at the next renewal, and the term by the RenewDeadline.
func TestLost(t *testing.T) {
	inFakeTime(t, func(t *testing.T, server *lockertest.Locker, l locker.Locker) {
		lock := newLock(t, l, "a")
		a := run(t, lock, timing)
		first := a.leads(t)
		b := run(t, newLock(t, l, "b"), timing)
		time.Sleep(time.Minute)
		began := time.Now()
		server.Forget("controller")
		wait(t, first.ctx.Done(), "the ctx of the work ends")
		between(t, "the end of the ctx", time.Since(began), 0, timing.RetryPeriod)
		check.Error(t, "it ended with", context.Cause(first.ctx), locker.ErrLost)
		time.Sleep(timing.RetryPeriod)
		synctest.Wait()
		check.Equal(t, "a takes itself for the leader", a.elector.IsLeader(), false)
		b.leads(t)
		between(t, "the succession", time.Since(began), 0, pause)
		wait(t, a.stopped, "a stops")
		between(t, "the end of the term", time.Since(began), 0, timing.RetryPeriod+timing.RenewDeadline)
		b.stop()
		run(t, lock, timing).leads(t) // a campaigns again
	})
}

// A leader cut off from the server stops before its lease ends.
func TestSilentServer(t *testing.T) {
	inFakeTime(t, func(t *testing.T, server *lockertest.Locker, l locker.Locker) {
		a := run(t, newLock(t, l, "a"), timing)
		first := a.leads(t)
		b := run(t, newLock(t, l, "b"), timing)
		time.Sleep(time.Minute)
		server.SetOutage(lockertest.Silent)
		began := time.Now()
		wait(t, first.ctx.Done(), "the ctx of the work ends")
		between(t, "the end of the ctx", time.Since(began), timing.RenewDeadline, timing.LeaseDuration)
		if !time.Now().Before(first.hold.Deadline()) {
			t.Errorf("it ends %v after the Deadline", time.Since(first.hold.Deadline()))
		}
		wait(t, a.stopped, "a stops") // after an attempt to release
		time.Sleep(time.Minute)
		server.SetOutage(lockertest.NoOutage)
		check.AtLeast(t, "fence of the second hold", b.leads(t).hold.Fence(), first.hold.Fence()+1)
	})
}

// A killed candidate, restarted under its identity, does not take the earlier hold for its own.
// With a strategy without re-entry it waits for the end of the lease.
func TestRestart(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		server, began := lockertest.New(), time.Now()
		before := server.Hold(locker.Request{Name: "controller", Owner: "a", TTL: timing.LeaseDuration, Fenced: true})
		a := run(t, newLock(t, server, "a"), timing)
		time.Sleep(timing.LeaseDuration - time.Second)
		if a.elector.IsLeader() || len(a.terms) > 0 {
			t.Error("a leads while the earlier hold lasts")
		}
		second := a.leads(t)
		between(t, "the succession", time.Since(began), timing.LeaseDuration, timing.LeaseDuration+pause)
		check.AtLeast(t, "fence of the second hold", second.hold.Fence(), before.Fence()+1)
	})
}

// hung is a Lock whose renewals hang, whatever their ctx.
type hung struct {
	*clientgo.Lock
	until chan struct{}
}

func (h hung) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	<-h.until
	return errors.New("it hung")
}

// The health check of client-go finds a hanging leader, and the ctx of its hold has ended.
func TestHealthz(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		server, until := lockertest.New(), make(chan struct{})
		lock, cfg := newLock(t, server, "a"), timing
		cfg.WatchDog = leaderelection.NewLeaderHealthzAdaptor(10 * time.Second)
		a := elect(t, lock, hung{lock, until}, cfg)
		first, began := a.leads(t), time.Now()
		check.OK(t, cfg.WatchDog.Check(nil))
		b := run(t, newLock(t, server, "b"), timing)
		wait(t, first.ctx.Done(), "the ctx of the work ends")
		between(t, "the end of the ctx", time.Since(began), 0, cfg.LeaseDuration)
		b.leads(t)
		time.Sleep(cfg.LeaseDuration + 10*time.Second)
		check.Equal(t, "a leader that hangs is healthy", cfg.WatchDog.Check(nil) == nil, false)
		close(until)
		wait(t, a.stopped, "a stops")
	})
}

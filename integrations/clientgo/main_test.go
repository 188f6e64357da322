package clientgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/holdfast-go/holdfast/integrations/clientgo"
	"github.com/holdfast-go/holdfast/locker"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m)
}

// patience bounds the waits.
const patience = 5 * time.Minute

// candidate is a LeaderElector of client-go over a Lock. It runs until stop.
type candidate struct {
	lock    *clientgo.Lock
	elector *leaderelection.LeaderElector
	terms   chan term // one for each call of the work
	stopped chan struct{}
	stop    func() // cancels Run, and waits for it
}

// term is a call of the work.
type term struct {
	number int64
	hold   *locker.Lock // nil if the term ended at once
	ctx    context.Context
}

// timing is the configuration of a LeaderElector in most tests.
var timing = leaderelection.LeaderElectionConfig{
	LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
}

// quick is for tests with a real server. Its leases outlast a busy machine's pauses.
var quick = leaderelection.LeaderElectionConfig{
	LeaseDuration: time.Minute, RenewDeadline: 40 * time.Second, RetryPeriod: 50 * time.Millisecond, ReleaseOnCancel: true,
}

func newLock(tb testing.TB, l locker.Locker, identity string) *clientgo.Lock {
	tb.Helper()
	lock := locker.Must(clientgo.New(l, clientgo.Config{Name: "controller", Identity: identity}))
	return lock
}

// elect runs a LeaderElector over lock, seen through wrapped.
func elect(tb testing.TB, lock *clientgo.Lock, wrapped resourcelock.Interface, cfg leaderelection.LeaderElectionConfig) *candidate {
	tb.Helper()
	c := &candidate{lock: lock, terms: make(chan term, 1), stopped: make(chan struct{})}
	cfg.Lock = wrapped
	cfg.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: lock.Lead(func(ctx context.Context, number int64) {
			c.terms <- term{number, lock.Held(), ctx}
			<-ctx.Done()
		}),
		OnStoppedLeading: func() {},
	}
	var err error
	if c.elector, err = leaderelection.NewLeaderElector(cfg); err != nil {
		tb.Fatal(err)
	}
	if cfg.WatchDog != nil {
		cfg.WatchDog.SetLeaderElection(c.elector)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(c.stopped)
		c.elector.Run(ctx)
	}()
	c.stop = func() {
		cancel()
		wait(tb, c.stopped, "Run returns")
	}
	tb.Cleanup(c.stop)
	return c
}

// run elects over lock itself.
func run(tb testing.TB, lock *clientgo.Lock, cfg leaderelection.LeaderElectionConfig) *candidate {
	tb.Helper()
	return elect(tb, lock, lock, cfg)
}

// leads waits until c leads.
func (c *candidate) leads(tb testing.TB) term {
	tb.Helper()
	return wait(tb, c.terms, c.lock.Identity()+" leads")
}

// wait returns the next value of c.
func wait[T any](tb testing.TB, c <-chan T, what string) (v T) {
	tb.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v = <-c:
	case <-timeout.C:
		tb.Fatalf("it did not happen within %v that %s", patience, what)
	}
	return v
}

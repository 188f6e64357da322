package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/handover"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Capabilities say what the strategy under test can do beyond an exclusive lock. What it cannot
// must say errors.ErrUnsupported.
type Capabilities struct {
	// Shared: Mode Shared.
	Shared bool
	// Convert: Lock.Downgrade and Lock.Upgrade, and a waiting writer keeps new readers out for a
	// while. It takes Shared.
	Convert bool
	// Reentrant: an acquire by the owner that holds succeeds.
	Reentrant bool
	// Hash: the lock's key is not a plain string (a hash, a sorted set). A string there is an
	// error, and not a foreign holder.
	Hash bool
	// Fair: a lock goes to the one that has waited longest, in any process, and to nobody else
	// while one waits. Waiters have places at the server (locker.ContentionError.Queue).
	Fair bool
	// MinHold: Request.MinHold. It is set if Harness.New is nil.
	MinHold bool
	// ReleaseTimeout: Timeouts.Release bounds a release, even if it is below Timeouts.Attempt. It is
	// set if Harness.New is nil.
	ReleaseTimeout bool
	// Renews: locks are renewed until they are released, for the first time before half of their
	// TTL is over. A case that waits for the end of a lease then closes the holder's driver, or
	// cuts it off.
	Renews bool
	// CoolDown is for how long a name stays taken after a release; 0 if it is free at once. The
	// suite then waits that long after each release, and tries no hand-over.
	CoolDown time.Duration
}

// Timeouts bound the strategy under test. They are short in fake time, where no answer is slow, and
// longer than any answer of a busy machine on real servers.
type Timeouts struct {
	Attempt time.Duration // of one send
	Release time.Duration // of a release with all its sends
}

// Harness describes to Run what it tests, and how to reach it.
type Harness struct {
	// Name is the name of what is tested, for reports. Empty: what Driver.Info says.
	Name string
	// Dial makes a driver over a client of its own, connected to target. It is that of a
	// drivertest.Harness.
	Dial func(tb testing.TB, target drivertest.Target) (driver.Driver, error)
	// Lacks are the features that the adapter does without. What is not declared must work.
	Lacks []drivertest.Feature
	// New makes the strategy under test. nil: strategies/single.
	New func(driver.Driver, Timeouts) (locker.Locker, error)
	// NewQuorum makes a quorum over nodes, which are Lockers of New on servers that share nothing,
	// and of which need must hold; need 0 is a majority. It should bound an attempt by three times
	// Timeouts.Attempt, so that a node may send twice, and refuse a lock with less than a tenth of its
	// TTL left. nil: no quorum if New is set, else strategies/redlock.
	NewQuorum func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error)
	// NewSemaphore makes a semaphore with so many permits of each name, which grants them in the
	// order of its waiters. nil: no semaphore if New is set, else strategies/semaphore.
	NewSemaphore func(drv driver.Driver, permits int, bound Timeouts) (locker.Locker, error)
	// Can says what the strategy of New is capable of.
	Can Capabilities
	// Around is middleware to put around the strategy, and around middleware/retry in the cases
	// that wait, to prove that it changes no contract. nil: none.
	Around locker.Middleware
	// On are the kinds of servers to run on. nil: all that Lacks allows; with -short, Memory and
	// one real server.
	On []drivertest.Kind

	// waits makes the middleware that waits; nil: retry.New.
	waits func(retry.Config) (locker.Middleware, error)
	// handsOver makes the middleware that hands over; nil: handover.New.
	handsOver func(handover.Config) (locker.Middleware, error)
	// named makes locks by name; nil: named.New.
	named func(l locker.Locker, req locker.Request) names
	// candidate makes candidates for the lead; nil: leader.New.
	candidate func(l locker.Locker, cfg leader.Config) candidate
	// doAll calls fn under several locks; nil: locker.DoAll.
	doAll func(ctx context.Context, l locker.Locker, reqs []locker.Request,
		fn func(context.Context, []*locker.Lock) error) error
}

// Run runs every case that the strategy must pass, each as the subtest kind/name of t. It fails t
// if a case that should have run did not, such as one that Dial skipped.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h.suite().Run(t)
}

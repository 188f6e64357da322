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

// Capabilities are abilities of the strategy under test beyond an exclusive lock. It must return
// errors.ErrUnsupported for all others.
type Capabilities struct {
	// Shared: Mode Shared.
	Shared bool
	// Convert: Lock.Downgrade and Lock.Upgrade, and a waiting writer keeps new readers out for a
	// while. It takes Shared.
	Convert bool
	// Reentrant: the owner of a hold may acquire the lock again.
	Reentrant bool
	// Hash: the lock's key is not a plain string (a hash, a sorted set). A string there is an
	// error, and not a foreign holder.
	Hash bool
	// Fair: a lock goes to the longest waiter of all processes, and to nobody else while one waits.
	// Waiters have places at the server (lease.Hint.Queue).
	Fair bool
	// MinHold: Request.MinHold. It is set if Harness.New is nil.
	MinHold bool
	// ReleaseTimeout: Timeouts.Release bounds a release, even if it is below Timeouts.Attempt. It is
	// set if Harness.New is nil.
	ReleaseTimeout bool
	// Renews: locks are renewed until they are released, for the first time before half of their TTL
	// is over. To await the end of a lease, a case closes the holder's driver, or cuts it off.
	Renews bool
	// EndlessCounter: the fence counter never expires. Otherwise it outlives the lock by a day.
	EndlessCounter bool
	// CoolDown is for how long a name stays taken after a release; 0 if it is free at once. The
	// suite then waits that long after each release, and tries no hand-over.
	CoolDown time.Duration
}

// Timeouts bound the strategy under test. They are short in fake time, without slow answers, and
// longer than any answer of a busy machine on real servers.
type Timeouts struct {
	Attempt time.Duration // of one send
	Release time.Duration // of a release with all its sends
}

// Siblings names the fence counter of a name and the channel of its releases.
type Siblings struct {
	// FenceKey returns the key of the counter, or "" if the name must be refused.
	FenceKey func(name string) string
	// IsFenceKey reports whether a key of the server is a counter.
	IsFenceKey func(key string) bool
	// WakeChannel returns the channel.
	WakeChannel func(name string) string
}

// Harness describes the subject of Run, and connects to it.
type Harness struct {
	// Name is the subject's name, for reports. Empty: the text of Driver.Info.
	Name string
	// Dial makes a driver over a client of its own, connected to target. It is that of a
	// drivertest.Harness.
	Dial func(tb testing.TB, target drivertest.Target) (driver.Driver, error)
	// Lacks are the features missing in the adapter. All others must work.
	Lacks []drivertest.Feature
	// New makes the strategy under test. nil: strategies/single.
	New func(driver.Driver, Timeouts) (locker.Locker, error)
	// NewQuorum makes a quorum over nodes: Lockers of New on independent servers. need of them must
	// hold; need 0 is a majority. It should bound an attempt by three times Timeouts.Attempt, so that
	// a node may send twice, and refuse a lock with less than a tenth of its TTL left. nil: no quorum
	// if New is set, else strategies/redlock.
	NewQuorum func(nodes []locker.Locker, need int, bound Timeouts) (locker.Locker, error)
	// NewSemaphore makes a semaphore with so many permits of each name, granted in the order of its
	// waiters. nil: no semaphore if New is set, else strategies/semaphore.
	NewSemaphore func(drv driver.Driver, permits int, bound Timeouts) (locker.Locker, error)
	// Can are the capabilities of New's strategy.
	Can Capabilities
	// Siblings names what New's strategy has beside the key of a name. nil: as docs/contracts.md
	// defines it.
	Siblings *Siblings
	// Around is middleware to put around the strategy, and around middleware/retry in the cases with
	// waiters: it must change no contract. nil: none.
	Around locker.Middleware
	// On are the kinds of servers to run on. nil: all allowed by Lacks; with -short, Memory and one
	// real server.
	On []drivertest.Kind

	// waits makes the waiting middleware; nil: retry.New.
	waits func(retry.Config) (locker.Middleware, error)
	// handsOver makes the hand-over middleware; nil: handover.New.
	handsOver func(handover.Config) (locker.Middleware, error)
	// named makes locks by name; nil: named.New.
	named func(l locker.Locker, req locker.Request) names
	// candidate makes candidates for the lead; nil: leader.New.
	candidate func(l locker.Locker, cfg leader.Config) candidate
	// doAll calls fn under several locks; nil: locker.DoAll.
	doAll func(ctx context.Context, l locker.Locker, reqs []locker.Request,
		fn func(context.Context, []*locker.Lock) error) error
}

// Run runs every case for the strategy, each as the subtest kind/name of t. It fails t if one of
// them did not run, such as by a skip of Dial.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h.suite().Run(t)
}

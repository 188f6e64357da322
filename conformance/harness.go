package conformance

import (
	"crypto/tls"
	"slices"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// TB is what a case and a Harness use of a test; *testing.T is one.
type TB = redistest.TB

// Kind is a kind of server, which asks for a kind of client.
type Kind string

// The kinds of servers.
const (
	Miniredis Kind = "miniredis" // github.com/alicebob/miniredis: one server, RESP2 and RESP3, no CLIENT TRACKING
	Single    Kind = "single"    // one real server
	Cluster   Kind = "cluster"   // a real cluster of masters
	Sentinel  Kind = "sentinel"  // a real master with replicas, found through Sentinels
)

// Target is where a Harness dials.
type Target struct {
	Kind Kind
	// Addrs are "host:port": one, or for Cluster and Sentinel several to begin with.
	Addrs []string
	// MasterName is the name that Sentinels know the master by.
	MasterName string
	// Username and Password are of the Redis servers; Sentinels have none. An empty Username is the
	// default user.
	Username, Password string
	// TLS is how to speak to the servers; nil: plain TCP.
	TLS *tls.Config
	// Miniredis reports whether the server lacks what Miniredis lacks, whatever the Kind.
	Miniredis bool
}

// Feature is something that a provider may lack.
type Feature string

// What a provider may lack.
const (
	FeatureSubscribe Feature = "Subscribe" // Driver.Subscribe
	FeatureBatch     Feature = "Batch"     // driver.Batcher
	FeatureReplicas  Feature = "Replicas"  // driver.Acknowledger
	FeatureCluster   Feature = "Cluster"   // dialling Kind Cluster
	FeatureSentinel  Feature = "Sentinel"  // dialling Kind Sentinel
	FeatureTLS       Feature = "TLS"       // dialling with Target.TLS
)

var features = []Feature{FeatureSubscribe, FeatureBatch, FeatureReplicas, FeatureCluster, FeatureSentinel, FeatureTLS}

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
	// Hash: the lock's key is not a plain string (a hash, a sorted set). A string there is an error,
	// and not a foreign holder.
	Hash bool
	// Renews: locks are renewed until they are released, for the first time before half of their TTL
	// is over. A case that waits for the end of a lease then closes the holder's driver, or cuts it
	// off.
	Renews bool
}

// Harness tells Run how to reach what it tests.
type Harness struct {
	// Name is the provider's, for reports. Empty: what Driver.Info says.
	Name string
	// Dial makes a driver over a client of its own, connected to target. It closes that client by
	// tb.Cleanup; Run closes the driver. It may be called from several goroutines. An error is for the
	// case to judge: what Lacks declares must be errors.ErrUnsupported.
	Dial func(tb TB, target Target) (driver.Driver, error)
	// Lacks are the features that the provider does without. What is not declared must work.
	Lacks []Feature
	// New makes the strategy under test. It should bound each send by half a second, since the suite
	// loses many answers. nil: strategies/single, so bounded.
	New func(driver.Driver) (locker.Locker, error)
	// NewQuorum makes a quorum over nodes, which are Lockers of New on servers that share nothing, and
	// of which need must hold; need 0 is a majority. It should bound an attempt by two seconds, and
	// refuse a lock with less than a tenth of its TTL left. nil: strategies/redlock, so bounded.
	NewQuorum func(nodes []locker.Locker, need int) (locker.Locker, error)
	// Can says what the strategy of New is capable of.
	Can Capabilities
	// Around is middleware to put around the strategy, and around middleware/retry in the cases that
	// wait: to prove that it changes no contract. nil: none.
	Around locker.Middleware
	// On are the kinds of servers to run on. nil: all that Lacks allows; with -short, miniredis and
	// one real server.
	On []Kind
	// LocksOnly leaves out the cases of the driver's own contract, and those of a quorum unless
	// NewQuorum is set: for a strategy over a provider that is proved elsewhere.
	LocksOnly bool

	// waits makes the middleware that waits; nil: retry.New.
	waits func(retry.Config) (locker.Middleware, error)

	short  bool          // the test runs with -short
	client *atomic.Value // what Driver.Info says; set by Run
}

// name is the provider's, as far as it is known.
func (h *Harness) name() string {
	if h.Name != "" || h.client == nil {
		return h.Name
	}
	name, _ := h.client.Load().(string)
	return name
}

func (h *Harness) lacks(f Feature) bool {
	return slices.Contains(h.Lacks, f)
}

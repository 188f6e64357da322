// Package suite has the common parts of the suites for locks and for adapters: the servers, the
// cases and their runs. Packages conformance and drivertest have the cases.
package suite

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Kind is a kind of server. Package drivertest documents it.
type Kind string

// The kinds of servers.
const (
	Memory    Kind = "memory"
	Miniredis Kind = "miniredis"
	Single    Kind = "single"
	Cluster   Kind = "cluster"
	Sentinel  Kind = "sentinel"
)

// Kinds are all kinds of servers, in the order of a suite's runs.
var Kinds = []Kind{Memory, Miniredis, Single, Cluster, Sentinel}

// simulated reports whether miniredis plays a server of kind k: in fake time or over TCP.
func (k Kind) simulated() bool { return k == Memory || k == Miniredis }

// Lists of kinds of servers for the table of a suite's cases. A case on Memory is one on Miniredis
// too, unless it needs fake time: then it is on OnlyMemory.
var (
	AllKinds        = []Kind{Memory, Single, Cluster, Sentinel}
	WithoutSentinel = []Kind{Memory, Single, Cluster}
	WithoutCluster  = []Kind{Memory, Single, Sentinel}
	OneAddress      = []Kind{Memory, Single} // a proxy can be put in front of these
	Simulated       = []Kind{Memory, Miniredis}
	OnlyMemory      = []Kind{Memory}
	OnlySingle      = []Kind{Single}
	OnlyCluster     = []Kind{Cluster}
)

// Target has the addresses of servers. drivertest.Target documents its fields.
type Target struct {
	Kind               Kind
	Addrs              []string
	MasterName         string
	Username, Password string
	TLS                *tls.Config
	Miniredis          bool
	Dial               func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Dial makes a driver over a client of its own.
type Dial func(testing.TB, Target) (driver.Driver, error)

// Feature is something that an adapter may lack. Package drivertest documents it.
type Feature string

// The features.
const (
	FeatureSubscribe Feature = "Subscribe"
	FeatureReplicas  Feature = "Replicas"
	FeatureSharded   Feature = "Sharded"
	FeatureCluster   Feature = "Cluster"
	FeatureSentinel  Feature = "Sentinel"
	FeatureTLS       Feature = "TLS"
	FeatureDial      Feature = "Dial"
	FeatureDialError Feature = "DialError"
)

// Features are all features.
var Features = []Feature{FeatureSubscribe, FeatureReplicas, FeatureSharded, FeatureCluster, FeatureSentinel, FeatureTLS,
	FeatureDial, FeatureDialError}

// Case is one case of a suite.
type Case struct {
	// Name is the name of its subtest, below the kind of server.
	Name string
	// Proves is the proved contract, such as "contract 4". It is logged when the case fails.
	Proves string
	// Why is the harm to users otherwise, in one sentence.
	Why string
	// On are the kinds of servers to run on.
	On []Kind
	// Own is true if it restarts, freezes or reconfigures the server: it gets one of its own.
	Own bool
	// Nodes is how many independent servers it needs. 0 is one server.
	Nodes int
	// LeavesKeys is true if keys may be left when it is over.
	LeavesKeys bool
	// Needs are the required features of the adapter.
	Needs []Feature
	// Run is the case.
	Run func(*T)
}

// Suite is a list of cases, and their environment.
type Suite struct {
	// Name is the subject's name, for reports. Empty: the text of Driver.Info.
	Name  string
	Dial  Dial
	Lacks []Feature
	On    []Kind // nil: all allowed by Lacks
	Cases []Case
	// IsCounter reports whether a key is a fence counter, which a case may leave. nil: by the suffix
	// of docs/contracts.md.
	IsCounter func(key string) bool
	// CountersStay: fence counters never expire. Otherwise each must expire.
	CountersStay bool
	// Short leaves out cases with several real servers. Run sets it if the test runs with -short.
	Short bool
	// Full runs the cases of a quorum on real servers too. Run sets it if HOLDFAST_TEST=full.
	Full bool

	matrix matrix
	client string // the text of Driver.Info; guarded by matrix.mu
}

// Lacking reports whether the adapter is declared to lack f.
func (s *Suite) Lacking(f Feature) bool { return slices.Contains(s.Lacks, f) }

// isCounter reports whether a key is a fence counter.
func (s *Suite) isCounter(key string) bool {
	if s.IsCounter != nil {
		return s.IsCounter(key)
	}
	return strings.HasSuffix(key, sibling.FenceSuffix)
}

// leavesOut reports whether s has no time for c on servers of kind k.
func (s *Suite) leavesOut(c *Case, k Kind) bool {
	return s.Short && (k == Cluster || k == Sentinel) || !s.Full && c.Nodes > 0 && !k.simulated()
}

// runsOn reports whether s runs on servers of kind k.
func (s *Suite) runsOn(k Kind) bool {
	switch {
	case k == Memory && s.Lacking(FeatureDial), k == Cluster && s.Lacking(FeatureCluster),
		k == Sentinel && s.Lacking(FeatureSentinel):
		return false
	case s.On != nil:
		return slices.Contains(s.On, k)
	default:
		return k != Miniredis || s.Lacking(FeatureDial)
	}
}

// applies reports whether c must pass on servers of kind k.
func (s *Suite) applies(c *Case, k Kind) bool {
	played := k
	if k == Miniredis && !c.inFakeTime() {
		played = Memory
	}
	return s.runsOn(k) && slices.Contains(c.On, played) && !s.leavesOut(c, k) &&
		!slices.ContainsFunc(c.Needs, s.Lacking)
}

// inFakeTime reports whether c runs in fake time alone.
func (c *Case) inFakeTime() bool { return slices.Equal(c.On, OnlyMemory) }

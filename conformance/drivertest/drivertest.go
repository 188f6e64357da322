package drivertest

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Harness describes the subject of Run, and connects to it.
type Harness struct {
	// Name is the adapter's, for reports. Empty: the text of Driver.Info.
	Name string
	// Dial makes a driver over a client of its own, connected to target. It closes that client by
	// tb.Cleanup; Run closes the driver. It may be called from several goroutines. For a target among
	// Lacks, it returns errors.ErrUnsupported.
	Dial func(tb testing.TB, target Target) (driver.Driver, error)
	// Lacks are the features missing in the adapter. All others must work.
	Lacks []Feature
	// On are the kinds of servers to run on. nil: all allowed by Lacks; with -short, Memory and one
	// real server.
	On []Kind
}

// Run runs every case for the adapter, each as the subtest kind/name of t. It fails t if one of
// them did not run, such as by a skip of Dial.
func Run(t *testing.T, h Harness) {
	t.Helper()
	h.suite().Run(t)
}

func (h Harness) suite() *suite.Suite {
	s := &suite.Suite{Name: h.Name, Lacks: h.Lacks, On: h.On}
	if h.Dial != nil {
		s.Dial = func(tb testing.TB, target suite.Target) (driver.Driver, error) { return h.Dial(tb, Target(target)) }
	}
	for _, c := range cases {
		s.Cases = append(s.Cases, suite.Case{
			Name: c.name, Proves: "the documentation of package driver", Why: c.why, On: c.on, Own: c.own,
			LeavesKeys: true, Needs: c.needs, Run: func(t *suite.T) { c.run(&caseT{t}) },
		})
	}
	return s
}

// Kind is a kind of server. Each asks for a kind of client.
type Kind = suite.Kind

// The kinds of servers.
const (
	// Memory is github.com/alicebob/miniredis in fake time: each case runs in a bubble of
	// testing/synctest, and its driver connects by Target.Dial.
	Memory    Kind = suite.Memory
	Miniredis Kind = suite.Miniredis // the same over TCP, in real time
	Single    Kind = suite.Single    // one real server
	Cluster   Kind = suite.Cluster   // a real cluster of masters
	Sentinel  Kind = suite.Sentinel  // a real master with replicas, found through Sentinels
)

// Target has the addresses of servers for Harness.Dial, and the login.
type Target struct {
	// Kind is the kind of server.
	Kind Kind
	// Addrs are "host:port": one, or for Cluster and Sentinel several to begin with.
	Addrs []string
	// MasterName is the master's name at the Sentinels.
	MasterName string
	// Username and Password are those of the Redis servers; Sentinels have none. An empty Username
	// is the default user.
	Username, Password string
	// TLS is how to speak to the servers. nil: plain TCP.
	TLS *tls.Config
	// Miniredis is true if the server lacks features as Miniredis does, whatever the Kind.
	Miniredis bool
	// Dial is how the client must connect to every address, if it is not nil: Kind Memory has a
	// network of its own. nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Feature is something that an adapter may lack.
type Feature = suite.Feature

// The features.
const (
	FeatureSubscribe Feature = suite.FeatureSubscribe // Driver.Subscribe
	FeatureReplicas  Feature = suite.FeatureReplicas  // Driver.EvalAcked
	FeatureSharded   Feature = suite.FeatureSharded   // driver.DeliverySharded
	FeatureCluster   Feature = suite.FeatureCluster   // a Target of Kind Cluster
	FeatureSentinel  Feature = suite.FeatureSentinel  // a Target of Kind Sentinel
	FeatureTLS       Feature = suite.FeatureTLS       // a Target with TLS
	// FeatureDial is a Target with Dial. Without it, cases run on Miniredis in real time, except those
	// about times.
	FeatureDial Feature = suite.FeatureDial
	// FeatureDialError is the error of the latest dial, for a caller that leaves while the client dials.
	FeatureDialError Feature = suite.FeatureDialError
)

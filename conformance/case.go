package conformance

import (
	"slices"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Case describes one case of the suite.
type Case struct {
	// Name is the name of its subtest, below the kind of server.
	Name string
	// Contract is the number of the contract in docs/contracts.md that it proves. 0 is the contract of
	// adapters, 14 the paragraph on fencing tokens.
	Contract int
	// Why says in one sentence what would go wrong otherwise.
	Why string
	// On lists the kinds of servers that it runs on.
	On []Kind
}

// Cases returns all cases in the order of their declaration. A Harness runs those that the features
// of its adapter and the capabilities of its strategy allow.
func Cases() []Case {
	list := make([]Case, 0, len(cases))
	for _, c := range cases {
		list = append(list, Case{Name: c.name, Contract: c.contract, Why: c.why, On: slices.Clone(c.on)})
	}
	return list
}

// testCase is a Case with the function that runs it.
type testCase struct {
	name     string
	contract int
	why      string
	on       []Kind
	own      bool                    // it affects the server as a whole: a real one is started for it alone
	quorum   bool                    // it runs on five independent servers
	leaves   bool                    // it may leave keys: nobody can release them, or a late command writes them
	needs    []Feature               // of the adapter
	can      func(Capabilities) bool // nil: every strategy can
	run      func(*caseT)
}

var (
	everywhere  = []Kind{Miniredis, Single, Cluster}
	anywhere    = []Kind{Miniredis, Single, Cluster, Sentinel}
	proxied     = []Kind{Miniredis, Single} // one address, so that a proxy can be put in front of it
	realOne     = []Kind{Single}
	miniOne     = []Kind{Miniredis}
	realCluster = []Kind{Cluster}
	kinds       = anywhere
)

var cases = slices.Concat(
	driverSetCases, driverEvalCases, driverErrorCases, driverOutcomeCases, driverSubscribeCases, driverBatchCases, driverAckedCases, driverCloseCases,
	driverClusterCases, lackCases,
	holdCases, wrongTypeCases, resumeCases, nameCases,
	acquireOutcomeCases, openOutcomeCases, holdOutcomeCases, leaseCases, renewalCases, fenceCases,
	waitCases, modeCases, convertCases, quorumCases, successionCases, connectCases,
)

// leavesKeys reports whether c may leave keys. Cases of the adapter's contract write any keys. Late
// commands of a quorum may write some after the drivers are closed; its cases check that before.
func (c *testCase) leavesKeys() bool { return c.leaves || c.contract == 0 || c.quorum }

// featureOf returns the feature that an adapter needs for a kind of server, if it needs one.
func featureOf(k Kind) (Feature, bool) {
	switch k {
	case Cluster:
		return FeatureCluster, true
	case Sentinel:
		return FeatureSentinel, true
	default:
		return "", false
	}
}

// many reports whether c starts several real servers on kind k. They take long to start, so -short
// leaves c out.
func (c *testCase) many(k Kind) bool {
	return k == Cluster || k == Sentinel || c.quorum && k != Miniredis
}

// applies reports whether h must pass c on servers of kind k.
func (c *testCase) applies(h *Harness, k Kind) bool {
	if h.On != nil && !slices.Contains(h.On, k) || h.short && c.many(k) {
		return false
	}
	if !slices.Contains(c.on, k) || c.can != nil && !c.can(h.Can) || h.LocksOnly && c.contract == 0 {
		return false
	}
	if c.quorum && h.LocksOnly && h.NewQuorum == nil { // proved with the adapter
		return false
	}
	if f, needed := featureOf(k); needed && h.lacks(f) {
		return false
	}
	return !slices.ContainsFunc(c.needs, h.lacks)
}

// script returns a script for one case.
func script(source string) *driver.Script { return driver.NewScript(source) }

package conformance

import (
	"slices"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Case describes one case of the suite.
type Case struct {
	// Name is the name of its subtest, below the kind of server.
	Name string
	// Contract is the number of the contract in docs/DESIGN.md that it proves; 0 is the driver's own, 14 the paragraph on
	// fencing tokens.
	Contract int
	// Why says in one sentence what would go wrong otherwise.
	Why string
	// On are the kinds of servers that it runs on.
	On []Kind
}

// Cases lists all cases in the order in which they are declared. A Harness runs those that its provider's features and its
// strategy's capabilities allow.
func Cases() []Case {
	list := make([]Case, 0, len(cases))
	for _, c := range cases {
		list = append(list, Case{Name: c.name, Contract: c.contract, Why: c.why, On: slices.Clone(c.on)})
	}
	return list
}

// testCase is a Case with what runs it.
type testCase struct {
	name     string
	contract int
	why      string
	on       []Kind
	own      bool                    // it does things to the server as a whole: real ones are started for it alone
	quorum   bool                    // on five servers that share nothing
	leaves   bool                    // keys, that nobody can release at its end, or that what was held back brings then
	needs    []Feature               // of the provider
	can      func(Capabilities) bool // nil: every strategy can
	run      func(*caseT)
}

var (
	everywhere  = []Kind{Miniredis, Single, Cluster}
	anywhere    = []Kind{Miniredis, Single, Cluster, Sentinel}
	proxied     = []Kind{Miniredis, Single} // one address, so that a proxy can stand before it
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

// leavesKeys tells whether what c leaves is no matter: the driver's own cases write what they like, and what a quorum's
// stragglers bring after the drivers are closed is for its cases to look for before.
func (c *testCase) leavesKeys() bool { return c.leaves || c.contract == 0 || c.quorum }

// featureOf is what a provider needs to be dialled at a kind of server.
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

// many reports whether c starts a set of real servers on kind k, which takes long: -short leaves it out.
func (c *testCase) many(k Kind) bool {
	return k == Cluster || k == Sentinel || c.quorum && k != Miniredis
}

// applies tells whether h must pass c on servers of kind k.
func (c *testCase) applies(h *Harness, k Kind) bool {
	if h.On != nil && !slices.Contains(h.On, k) || h.short && c.many(k) {
		return false
	}
	if !slices.Contains(c.on, k) || c.can != nil && !c.can(h.Can) || h.LocksOnly && c.contract == 0 {
		return false
	}
	if c.quorum && h.LocksOnly && h.NewQuorum == nil { // proved with the provider
		return false
	}
	if f, needed := featureOf(k); needed && h.lacks(f) {
		return false
	}
	return !slices.ContainsFunc(c.needs, h.lacks)
}

// script is short for a script of one case.
func script(source string) *driver.Script { return driver.NewScript(source) }

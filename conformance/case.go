package conformance

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// testCase is one case.
type testCase struct {
	name     string
	contract int    // its number in docs/contracts.md; or fencing, or minimumHold
	why      string // the harm to users otherwise, in one sentence
	on       []suite.Kind
	own      bool                    // it restarts, freezes or reconfigures the server: it gets one of its own
	quorum   bool                    // it runs on five independent servers
	permits  bool                    // it runs on a semaphore
	leaves   bool                    // it may leave keys: nobody can release them, or a late command writes them
	needs    []suite.Feature         // of the adapter
	can      func(Capabilities) bool // nil: every strategy can
	run      func(*caseT)
}

// The contracts without a number: the paragraphs on fencing tokens and on the minimum hold.
const (
	fencing     = 15
	minimumHold = 16
)

// caseT is a test of one case.
type caseT struct {
	*suite.T
	h *Harness
}

var cases = slices.Concat(
	holdCases, wrongTypeCases, resumeCases, nameCases,
	acquireOutcomeCases, unknownOutcomeCases, releaseOutcomeCases, holdOutcomeCases,
	leaseCases, renewalCases, fenceCases, waitCases, placeCases, handOverCases,
	modeCases, convertCases, permitCases, quorumCases, successionCases, severalCases,
	namedCases, leaderCases, minHoldCases, misuseCases, breakCases, watchCases, noteCases,
	besideCases, closeCases,
)

// applies reports whether the strategy of h must pass c.
func (c *testCase) applies(h *Harness) bool {
	if c.quorum && h.New != nil && h.NewQuorum == nil {
		return false
	}
	if c.permits && h.New != nil && h.NewSemaphore == nil {
		return false
	}
	can := h.Can
	can.MinHold = can.MinHold || h.New == nil // single does
	can.ReleaseTimeout = can.ReleaseTimeout || h.New == nil
	return c.can == nil || c.can(can)
}

// proves names the contract of c.
func (c *testCase) proves() string {
	switch c.contract {
	case fencing:
		return "fencing tokens"
	case minimumHold:
		return "the minimum hold"
	}
	return fmt.Sprintf("contract %d", c.contract)
}

// suite returns the cases for the strategy of h, and their servers.
func (h *Harness) suite() *suite.Suite {
	s := &suite.Suite{Name: h.Name, Lacks: h.Lacks, On: h.On, CountersStay: h.Can.EndlessCounter}
	if h.Siblings != nil {
		s.IsCounter = h.Siblings.IsFenceKey
	}
	if h.Dial != nil {
		s.Dial = func(tb testing.TB, target suite.Target) (driver.Driver, error) {
			return h.Dial(tb, drivertest.Target(target))
		}
	}
	for _, c := range cases {
		if !c.applies(h) {
			continue
		}
		sc := suite.Case{
			Name: c.name, Proves: c.proves(), Why: c.why, On: c.on, Own: c.own, Needs: c.needs,
			// Late commands of a quorum may write keys after the drivers are closed. Its cases
			// check before.
			LeavesKeys: c.leaves || c.quorum,
			Run:        func(t *suite.T) { c.run(&caseT{t, h}) },
		}
		if c.quorum {
			sc.Nodes = quorumSize
		}
		s.Cases = append(s.Cases, sc)
	}
	return s
}

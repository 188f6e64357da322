package drivertest

import (
	"slices"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// testCase is one case.
type testCase struct {
	name  string
	why   string // the harm to users otherwise, in one sentence
	on    []Kind
	own   bool // it restarts, freezes or reconfigures the server: it gets one of its own
	needs []Feature
	run   func(*caseT)
}

// caseT is a test of one case.
type caseT struct{ *suite.T }

var cases = slices.Concat(
	setCases, evalCases, errorCases, outcomeCases, togetherCases, subscribeCases, shardedCases, ackedCases,
	closeCases, clusterCases, connectCases, lackCases,
)

func script(source string) *driver.Script { return driver.NewScript(source) }

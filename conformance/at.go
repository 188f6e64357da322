package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
)

// Result is what became of one case in RunAt.
type Result struct {
	// Case is the case's name, Proves the contract that it proves, and Why says what would go wrong
	// for users otherwise.
	Case, Proves, Why string
	// LeftOut says why the case was not run. Empty: it was.
	LeftOut string
	// Failures has what the case reported if it failed, else nothing.
	Failures []string
	// Took is how long the case took.
	Took time.Duration
}

// RunAt runs the cases outside of go test, on an existing server that other programs may use at the
// same time. target has the Kind Single and one address; database 0 is used. Cases that stop, flush
// or reconfigure the server, or that need several servers, are left out. Those that disturb
// connections do so by a proxy in this process. The cases use keys whose names contain
// "conformance." and random text. RunAt removes these keys at the end, even if ctx has ended.
//
// pick chooses the cases by their names; nil chooses all. RunAt calls report for each of them, one
// at a time. Its error says that the server cannot be reached, that h or target is wrong, or which
// keys were left.
func RunAt(ctx context.Context, h Harness, target drivertest.Target, pick func(name string) bool, report func(Result)) error {
	return h.suite().RunAt(ctx, suite.Target(target), pick, func(r suite.Result) {
		result := Result{Case: r.Case.Name, Proves: r.Case.Proves, Why: r.Case.Why, LeftOut: r.LeftOut, Took: r.Took}
		if r.Failed {
			result.Failures = slices.Clone(r.Lines)
			if len(result.Failures) == 0 {
				result.Failures = []string{"it failed without a word"}
			}
		}
		report(result)
	})
}

package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/conformance/internal/suite"
)

// Result is the result of one case in RunAt.
type Result struct {
	// Case is the case's name, Proves its contract, and Why the harm to users if it fails.
	Case, Proves, Why string
	// LeftOut is the reason for not running the case. Empty: it was run.
	LeftOut string
	// Failures are the reports of a failed case.
	Failures []string
	// Took is the duration of the case.
	Took time.Duration
}

// RunAt runs the cases outside of go test, on an existing server that other programs may use at the
// same time. target has the Kind Single and one address; database 0 is used. Cases are left out if
// they stop, flush or reconfigure the server, or need several. A proxy in this process disturbs
// connections. All keys contain "conformance." and random text. RunAt removes these keys at the
// end, even if ctx has ended.
//
// pick chooses the cases by their names; nil chooses all. RunAt calls report for each of them, one
// at a time. It returns an error if the server cannot be reached, h or target is wrong, or keys
// were left; the error names the keys.
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

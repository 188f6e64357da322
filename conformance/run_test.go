package conformance

import "testing"

func TestRun(t *testing.T) { //nolint:tparallel // Run's kinds of servers come one after the other, their cases in parallel
	t.Parallel()
	Run(t, Harness{Dial: plain})
}

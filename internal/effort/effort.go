// Package effort decides how much the tests of this repository do: little with -short, CI's part by
// default, or everything.
package effort

import (
	"fmt"
	"os"
	"testing"
)

const variable = "HOLDFAST_TEST"

// Full reports whether tests do all they can: whether the environment says HOLDFAST_TEST=full, as
// in `make test-all`. It panics if the variable has an unknown value.
func Full() bool {
	switch mode := os.Getenv(variable); mode {
	case "full":
		return true
	case "", "pairwise":
		return false
	default:
		panic(fmt.Sprintf("%s=%q: want pairwise, the default, or full", variable, mode))
	}
}

// NeedFull skips the test unless Full.
func NeedFull(tb testing.TB) {
	tb.Helper()
	if !Full() {
		tb.Skip("make test-all runs it")
	}
}

// Of returns short with -short, full if Full, and else usual: how often a test repeats something,
// or how large it makes it.
func Of[T any](short, usual, full T) T {
	switch {
	case testing.Short():
		return short
	case Full():
		return full
	default:
		return usual
	}
}

package main

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the program as a worker if torture started it as one.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := worker(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(statusFailed)
	}
}

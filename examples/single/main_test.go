package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

const want = `instance one holds report
instance two is refused: instance one makes the report
instance two holds report
a late write of instance one counts: false
instance one knows: lock was released
`

func TestEmbedded(t *testing.T) {
	t.Parallel()
	program.Prints(t, want)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "single", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Misused(t, "stray")
}

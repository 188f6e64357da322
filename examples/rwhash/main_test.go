package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

const want = `page one holds, shared
page two holds, shared
import waits
page three is refused
import holds, exclusive
page one is refused
import goes on, shared
page one holds, shared
`

func TestEmbedded(t *testing.T) {
	t.Parallel()
	program.Prints(t, want)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "rwhash", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Misused(t, "stray")
}

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

const want = `night holds: <nil>
one server is gone: <nil>
night renews: <nil>
night holds on, others are refused: true
night releases: <nil>
day holds, with a higher fencing token: true
day releases: <nil>
no quorum is left: <nil>
an outage, not a refusal: true
`

func TestEmbedded(t *testing.T) {
	t.Parallel()
	program.Prints(t, want)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "redlock", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Fails(t, "redlock", "empty URL", "-redis", "redis://127.0.0.1:1,,")
	program.Misused(t, "stray")
}

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

const want = `deposit, under 1 hold(s)
debit, under 2 hold(s)
somebody else is refused
fee, under 2 hold(s)
`

func TestEmbedded(t *testing.T) {
	t.Parallel()
	program.Prints(t, want)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "reentrant", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Misused(t, "stray")
}

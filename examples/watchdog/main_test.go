package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

const want = `work for two TTLs, not watched: lost: true
work for two TTLs, watched: error: <nil>
renewed at least four times: true
work that hangs, watched: ended by MaxHold: true
`

func TestEmbedded(t *testing.T) {
	t.Parallel()
	if out := program.MustRun(t); out != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}

func TestRealServer(t *testing.T) {
	t.Parallel()
	redistest.Need(t)
	if out := program.MustRun(t, "-redis", "redis://"+redistest.Start(t, redistest.Options{}).Addr()); out != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "watchdog", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Misused(t, "stray")
}

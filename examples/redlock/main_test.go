package main

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
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
	if out := program.MustRun(t); out != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}

func TestRealServers(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	redistest.Need(t)
	var urls []string
	for _, s := range redistest.StartN(t, 3, redistest.Options{}) {
		urls = append(urls, "redis://"+s.Addr())
	}
	if out := program.MustRun(t, "-redis", strings.Join(urls, ",")); out != want {
		t.Errorf("it printed\n%s\nwant\n%s", out, want)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "redlock", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Fails(t, "redlock", "empty URL", "-redis", "redis://127.0.0.1:1,,")
	program.Misused(t, "stray")
}

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
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

func TestSettle(t *testing.T) { //nolint:paralleltest // it replaces standard output
	program.PrintsInFakeTime(t, want, func(t *testing.T) {
		var nodes []*node
		for range 5 {
			server := clients.NewMemory(t)
			drv, closeClient, err := clients.All[0].InMemory(server.Dial)
			check.Must(t, err)
			t.Cleanup(func() {
				_ = drv.Close() // its server may be gone, and a clean-up under way
				_ = closeClient()
			})
			l := locker.Must(single.New(drv, single.Config{}))
			nodes = append(nodes, &node{locker: l, stop: func() error { server.Close(); return nil }})
		}
		check.OK(t, settle(t.Context(), nodes))
	})
}

// The output depends on times: TestSettle checks it.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	program.MustRun(t)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "redlock", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Fails(t, "redlock", "empty URL", "-redis", "redis://127.0.0.1:1,,")
	program.Misused(t, "stray")
}

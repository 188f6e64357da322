package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

func TestMain(m *testing.M) { program.TestMain(m, main) }

const want = `work for two TTLs, not watched: lost: true
work for two TTLs, watched: error: <nil>
renewed at least four times: true
work that hangs, watched: ended by MaxHold: true
`

// The program's comparison comes out as described in fake time, with a server in memory.
func TestCompare(t *testing.T) { //nolint:paralleltest // it replaces standard output
	program.PrintsInFakeTime(t, want, func(t *testing.T) {
		bare := locker.Must(single.New(clients.OpenMemory(t, clients.NewMemory(t)), single.Config{}))
		dog := locker.Must(watchdog.New(watchdog.Config{MaxHold: 3 * ttl}))
		check.OK(t, compare(t.Context(), bare, locker.Chain(bare, dog)))
	})
}

// The output is about times: TestCompare checks it.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	program.MustRun(t)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "watchdog", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Misused(t, "stray")
}

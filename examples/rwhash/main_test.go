package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
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

func TestPublish(t *testing.T) { //nolint:paralleltest // it replaces standard output
	program.PrintsInFakeTime(t, want, func(t *testing.T) {
		l := locker.Must(rwhash.New(clients.OpenMemory(t, clients.NewMemory(t)), rwhash.Config{}))
		check.OK(t, publish(t.Context(), l))
	})
}

// The output depends on times: TestPublish checks it.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	program.MustRun(t)
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	program.Fails(t, "rwhash", "connection refused", "-redis", "redis://127.0.0.1:1")
	program.Misused(t, "stray")
}

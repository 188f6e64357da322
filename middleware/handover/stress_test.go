package handover_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lockertest"
	"github.com/holdfast-go/holdfast/middleware/internal/contend"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Requests of all kinds in real time and in parallel, many of them giving up at any instant: one
// holds at a time, and nothing stays behind.
func TestGivingUpAtAnyInstant(t *testing.T) {
	t.Parallel()
	server := lockertest.New()
	contend.GiveUp(t, handingOver(server, time.Millisecond), func() locker.Request {
		req := locker.Request{Name: name, Fenced: rand.N(2) == 0}
		switch rand.N(16) {
		case 0:
			req.Owner = "me"
		case 1:
			req.NoWait = true
		case 2:
			req.Mode = locker.Shared
		}
		return req
	})
	check.Equal(t, "the lock is held", locker.Must(server.Inspect(t.Context(), name)).Held, false)
}

// Competing processes at a server: one holds at a time, all get turns, and the tokens increase.
func TestProcesses(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		contend.Processes(t, name, func() locker.Locker {
			return handingOver(locker.Must(single.New(clients.OpenMemory(t, m), single.Config{})), 50*ms)
		})
	})
}

package tracing_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/middleware/tracing"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// process is one process with a client, an SDK and a chain of its own.
type process struct {
	*recorded
	driver driver.Driver
	locker locker.Locker
}

// overRedis runs f in fake time on one server. start starts a process on one of the clients.
func overRedis(t *testing.T, f func(t *testing.T, m *memredis.Server, start func(client int, cfg tracing.Config) *process)) {
	t.Helper()
	check.InFakeTime(t, func(t *testing.T) {
		m := clients.NewMemory(t)
		f(t, m, func(client int, cfg tracing.Config) *process {
			drv, closeClient, err := clients.All[client].InMemory(m.Dial)
			check.Must(t, err)
			t.Cleanup(func() { _ = errors.Join(drv.Close(), closeClient()) })
			p := &process{recorded: record(), driver: drv}
			p.locker = locker.Chain(locker.Must(single.New(p.driver, single.Config{})), p.middleware(cfg), locker.Must(retry.New(retry.Config{})))
			return p
		})
		synctest.Wait()
	})
}

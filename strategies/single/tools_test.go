package single_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/internal/faultdriver"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const name = "job"

var (
	sleep  = locktest.Sleep
	only   = check.Only
	errCut = faultdriver.ErrCut
)

// fault is the fate of one command.
type fault = faultdriver.Fault

// bench is a server in memory, in fake time, and a Locker on it.
type bench struct {
	*single.Locker
	drv *faultdriver.Driver
	m   *memredis.Server
}

func run(t *testing.T, cfg single.Config, f func(t *testing.T, b bench)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, drv := locktest.Memory(t)
		f(t, bench{locker.Must(single.New(drv, cfg)), drv, m})
	})
}

// eachRun runs f as run does, for each entry of a table.
func eachRun[T any](t *testing.T, cfg single.Config, tests map[string]T, f func(t *testing.T, b bench, tt T)) {
	t.Parallel()
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			run(t, cfg, func(t *testing.T, b bench) { f(t, b, tt) })
		})
	}
}

func (b bench) acquire(t *testing.T, req locker.Request) *locker.Lock {
	t.Helper()
	req.Name = name
	return locker.Must(b.Acquire(t.Context(), req))
}

// wantFree waits in fake time until the key is gone, at most for within.
func (b bench) wantFree(t *testing.T, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); b.m.Exists(name); sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the key is still there %v later", within)
		}
	}
}

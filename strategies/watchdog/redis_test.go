//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// server is a server in memory, in fake time, and a driver with faults set by the test.
type server struct {
	driver.Driver
	m *memredis.Server

	mu     sync.Mutex
	silent bool // nothing is executed or answered
	evals  int
}

// newServer is for synctest bubbles: no packet leaves the process.
func newServer(t *testing.T) *server {
	t.Helper()
	m := clients.NewMemory(t)
	return &server{Driver: clients.OpenMemory(t, m), m: m}
}

func (s *server) silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// sent returns the number of scripts sent.
func (s *server) sent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evals
}

func (s *server) Eval(ctx context.Context, script *driver.Script, keys, args []string) (driver.Reply, error) {
	s.mu.Lock()
	s.evals++
	silent := s.silent
	s.mu.Unlock()
	if silent {
		<-ctx.Done()
		return driver.Reply{}, ctx.Err()
	}
	return s.Driver.Eval(ctx, script, keys, args)
}

func overRedis(t *testing.T, cfg watchdog.Config, f func(t *testing.T, s *server, l locker.Locker)) {
	t.Helper()
	check.InFakeTime(t, func(t *testing.T) {
		s := newServer(t)
		l := locker.Must(single.New(s, single.Config{}))
		f(t, s, locker.Chain(l, locker.Must(retry.New(retry.Config{})), locker.Must(watchdog.New(cfg))))
	})
}

// A hold found gone by its renewal is lost at once. Others in the same round trip are not.
func TestGoneAmongOthers(t *testing.T) {
	overRedis(t, watchdog.Config{}, func(t *testing.T, s *server, l locker.Locker) {
		locks := acquireMany(t, t.Context(), l, 10, "", ttl)
		s.m.Del("3")
		s.m.Del("4")
		s.m.HSet("4", "kind", "other")
		time.Sleep(ttl / 3)
		synctest.Wait()
		for i, lock := range locks {
			if i == 3 || i == 4 {
				match(t, lock.Err(), locker.ErrLost)
				continue
			}
			release(t, lock)
		}
	})
}

// One watchdog renews locks on two servers. When one is silent, the locks of the other are renewed
// as before. The test counts goroutines, so it does not run in parallel.
func TestSilentServerDelaysNoOther(t *testing.T) { //nolint:paralleltest // see above
	synctest.Test(t, func(t *testing.T) {
		silent, well := newServer(t), newServer(t)
		dog := locker.Must(watchdog.New(watchdog.Config{}))
		doomed := acquireMany(t, t.Context(), dog(locker.Must(single.New(silent, single.Config{}))), 100, "", ttl)
		ctx, at := renewals(t)
		lock := acquire(t, ctx, dog(locker.Must(single.New(well, single.Config{}))), locker.Request{})
		silent.silence(true)
		before := runtime.NumGoroutine()
		start := time.Now()
		for time.Since(start) < 10*time.Minute {
			time.Sleep(500 * time.Millisecond)
			if n := runtime.NumGoroutine(); n > before+len(doomed)+16 { // a worker at most per lock without an answer
				t.Fatalf("%d goroutines, %d before", n, before)
			}
		}
		synctest.Wait()
		var last time.Duration
		for _, now := range at.list() {
			check.AtMost(t, "time between two renewals", now-last, ttl/3)
			last = now
		}
		held(t, lock)
		for _, lock := range doomed {
			match(t, lock.Err(), locker.ErrLost)
		}
		sent := silent.sent()
		time.Sleep(time.Minute)
		check.Equal(t, "scripts sent, a minute after the loss", silent.sent(), sent)
		match(t, lock.Release(t.Context()))
	})
}

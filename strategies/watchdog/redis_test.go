//nolint:forbidigo // fake time
package watchdog_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
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

// server is a server in memory, in fake time, and a driver whose calls the test can disturb.
type server struct {
	driver.Driver
	m *memredis.Server

	mu      sync.Mutex
	silent  bool          // nothing is executed or answered
	partly  bool          // the same, for batches alone
	late    time.Duration // batches are executed this much later, and answered then
	batches []int         // their sizes
	evals   int           // scripts sent alone
}

// newServer is for synctest bubbles: no packet leaves the process.
func newServer(t *testing.T) *server {
	t.Helper()
	m := clients.NewMemory(t)
	return &server{Driver: clients.OpenMemory(t, m), m: m}
}

func (s *server) set(change func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// sent returns how many renewals and releases were sent alone, and the sizes of the batches.
func (s *server) sent() (alone int, batches []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evals, slices.Clone(s.batches)
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

func (s *server) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	s.mu.Lock()
	s.batches = append(s.batches, len(calls))
	silent, late := s.silent || s.partly, s.late
	s.mu.Unlock()
	if silent {
		<-ctx.Done()
		results := make([]driver.Result, len(calls))
		for i := range results {
			results[i].Err = ctx.Err()
		}
		return results
	}
	time.Sleep(late)
	var results []driver.Result
	for part := range slices.Chunk(calls, 2) { // the connection in memory has no buffer: the server's answers would block it
		results = append(results, s.Driver.(driver.Batcher).EvalMany(ctx, part)...)
	}
	return results
}

func overRedis(t *testing.T, cfg watchdog.Config, f func(t *testing.T, s *server, l locker.Locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		l := locker.Must(single.New(s, single.Config{}))
		f(t, s, locker.Chain(l, locker.Must(retry.New(retry.Config{})), locker.Must(watchdog.New(cfg))))
	})
}

// acquireMany acquires n locks, every second one with a fencing token.
func acquireMany(t *testing.T, ctx context.Context, l locker.Locker, n int) []*locker.Lock {
	t.Helper()
	locks := make([]*locker.Lock, n)
	for i := range locks {
		locks[i] = acquire(t, ctx, l, locker.Request{Name: fmt.Sprint(i), Fenced: i%2 == 0})
	}
	return locks
}

// The locks of one driver are renewed in few round trips: without the jitter, in the fewest
// possible.
func TestRenewalsTravelTogether(t *testing.T) {
	t.Parallel()
	const locked = 300
	for jitter, most := range map[float64]int{0: 6 * locked / 8, 1e-12: 6 * 2} {
		t.Run(fmt.Sprint(jitter), func(t *testing.T) {
			overRedis(t, watchdog.Config{Jitter: jitter}, func(t *testing.T, s *server, l locker.Locker) {
				locks := acquireMany(t, t.Context(), l, locked)
				alone, _ := s.sent()
				time.Sleep(time.Minute)
				synctest.Wait()
				now, batches := s.sent()
				check.Equal(t, "renewals that travelled alone", now-alone, 0)
				var renewals int
				for _, n := range batches {
					renewals += n
				}
				if renewals < 6*locked || slices.Max(batches) > 256 || len(batches) > most {
					t.Errorf("%d renewals in %d batches of up to %d; want %d batches at most", renewals, len(batches), slices.Max(batches), most)
				}
				release(t, locks...)
				if keys := s.m.Keys(); len(keys) != locked/2 { // the fence counters
					t.Errorf("%d keys are left", len(keys))
				}
			})
		})
	}
}

// A hold that a renewal finds gone is lost at once. Others in the same batch are not.
func TestGoneAmongOthers(t *testing.T) {
	overRedis(t, watchdog.Config{}, func(t *testing.T, s *server, l locker.Locker) {
		locks := acquireMany(t, t.Context(), l, 10)
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
		doomed := acquireMany(t, t.Context(), dog(locker.Must(single.New(silent, single.Config{}))), 100)
		ctx, at := renewals(t)
		lock := acquire(t, ctx, dog(locker.Must(single.New(well, single.Config{}))), locker.Request{})
		silent.set(func(s *server) { s.silent = true })
		before := runtime.NumGoroutine()
		start := time.Now()
		for time.Since(start) < 10*time.Minute {
			time.Sleep(500 * time.Millisecond)
			if n := runtime.NumGoroutine(); n > before+len(doomed)+3*16 { // one at most per lock without an answer, sixteen for batches of each kind
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
		alone, batches := silent.sent()
		time.Sleep(time.Minute)
		if now, more := silent.sent(); now != alone || len(more) != len(batches) {
			t.Error("lost locks are renewed")
		}
		match(t, lock.Release(t.Context()))
	})
}

// A silent node of a cluster leaves a batch without a reply, also for the locks of the other nodes:
// these are renewed alone.
func TestUnansweredBatch(t *testing.T) {
	overRedis(t, watchdog.Config{}, func(t *testing.T, s *server, l locker.Locker) {
		locks := acquireMany(t, t.Context(), l, 100)
		s.set(func(s *server) { s.partly = true })
		time.Sleep(3 * ttl)
		release(t, locks...)
		time.Sleep(5 * time.Second) // a batch may be under way
	})
}

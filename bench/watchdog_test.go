//go:build unix

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

const (
	watched  = 10_000
	watching = 3 * watchedTTL // how long the processor is looked at
)

// BenchmarkWatchdog watches 10,000 locks for 30 seconds, and then sends the same number of renewals
// by the bare client, in as many round trips. It reports either's share of one core, and a watched
// lock's heap beyond a Lock. A run takes a minute and a half; more of them tell nothing new:
// -benchtime 1x.
func BenchmarkWatchdog(b *testing.B) {
	for _, c := range clients {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				watch(b, c)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func watch(b *testing.B, c client) {
	server := redistest.Start(b, redistest.Options{})
	drv, _ := c.open(b, server.Addr())
	defer drv.Close()
	strategy := locker.Must(single.New(drv, single.Config{}))

	connect, _ := hold(b, strategy) // its connections are not counted below
	release(b, connect)
	unwatched, plain := hold(b, strategy)
	release(b, unwatched)
	goroutines := runtime.NumGoroutine()
	locks, withDog := hold(b, locker.Must(watchdog.New(watchdog.Config{}))(strategy))
	earlier := statsOf(b, server)
	most, before := 0, processor(b)
	for start := time.Now(); time.Since(start) < watching; pause(10 * time.Millisecond) {
		most = max(most, runtime.NumGoroutine())
	}
	dog := processor(b) - before
	now := statsOf(b, server)
	release(b, locks)
	renewals, trips := now.scripts-earlier.scripts, now.reads-earlier.reads

	pipeline := c.pipeline(b, server.Addr())
	names := make([]string, watched)
	for i := range names {
		names[i] = strconv.Itoa(i)
		server.MustCommand(b, "SET", names[i], token)
	}
	bare := replay(b, pipeline, names, renewals, trips)

	percent := func(d time.Duration) float64 { return 100 * float64(d) / float64(watching) }
	b.ReportMetric(percent(dog), "watched-cpu-%")
	b.ReportMetric(percent(bare), "bare-cpu-%")
	b.ReportMetric(percent(dog-bare), "more-cpu-%")
	b.ReportMetric(float64(renewals)/watched, "renewals/lock")
	b.ReportMetric(float64(renewals)/float64(trips), "renewals/trip")
	b.ReportMetric(plain, "unwatched-B/lock")
	b.ReportMetric(withDog-plain, "more-B/lock")
	b.ReportMetric(float64(most-goroutines), "more-goroutines")
}

// hold takes all locks, and returns how much of the heap each takes.
func hold(b *testing.B, l locker.Locker) (locks []*locker.Lock, perLock float64) {
	locks = make([]*locker.Lock, watched)
	before := heap()
	inParallel(b, func(i int) (err error) {
		//realtime:ok a benchmark
		locks[i], err = l.Acquire(context.Background(), locker.Request{Name: strconv.Itoa(i), TTL: watchedTTL})
		return err
	})
	return locks, float64(heap()-before) / watched
}

func release(b *testing.B, locks []*locker.Lock) {
	inParallel(b, func(i int) error { return locks[i].Release(context.Background()) })
	clear(locks)
}

// inParallel calls f for each lock, by 16 goroutines.
func inParallel(b *testing.B, f func(i int) error) {
	b.Helper()
	const workers = 16
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < watched; i += workers {
				if err := f(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if b.Failed() {
		b.FailNow()
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // an object with a finalizer takes two
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processor is how long this process has run.
func processor(b *testing.B) time.Duration {
	var usage syscall.Rusage
	check.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func pause(d time.Duration) { <-time.After(d) }

// stats are the server's counts. A round trip is one read of the server.
type stats struct{ scripts, reads int }

func statsOf(b *testing.B, server *redistest.Server) (s stats) {
	info := fmt.Sprint(server.MustCommand(b, "INFO", "everything"))
	for line := range strings.Lines(info) {
		_, _ = fmt.Sscanf(line, "total_reads_processed:%d", &s.reads)
		_, _ = fmt.Sscanf(line, "cmdstat_evalsha:calls=%d", &s.scripts)
	}
	if s.reads == 0 || s.scripts == 0 {
		b.Fatalf("INFO counts no reads or no scripts: %s", info)
	}
	return s
}

// replay sends renewals by the bare client, in round trips spread over the watchdog's time, and
// returns the process's running time.
func replay(b *testing.B, pipeline func(names []string) error, names []string, renewals, trips int) time.Duration {
	check.Must(b, pipeline(names[:1]))
	ring := append(slices.Clip(names), names...) // a round trip may go on at the first name
	before, start, next := processor(b), time.Now(), 0
	for n := range trips {
		pause(watching*time.Duration(n)/time.Duration(trips) - time.Since(start))
		size := renewals*(n+1)/trips - renewals*n/trips
		if err := pipeline(ring[next : next+size]); err != nil {
			b.Fatal(fmt.Errorf("the bare client: %w", err))
		}
		next = (next + size) % len(names)
	}
	return processor(b) - before
}

package handover_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/redisson"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A process gets its turns beside others that hand over, however distant, and nobody waits long.
func TestDistantProcess(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		latency  time.Duration // each way
		fair     bool
		redisson bool // without a queue at the server
		far      int  // holds of the far process
	}{
		"near": {0, false, false, 100}, "5 ms away": {5 * ms, false, false, 100}, "30 ms away": {30 * ms, false, false, 100},
		"in a strict order": {5 * ms, true, false, 100}, "without a queue": {3 * ms / 10, false, true, 1000},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			clients.Bubble(t, func(t *testing.T) {
				network := memnet.New()
				network.Latency = ms / 10
				m := memredis.Start(t, network)
				open := func(drv driver.Driver) locker.Locker {
					var strategy locker.Locker = locker.Must(single.New(drv, single.Config{Fair: tt.fair}))
					if tt.redisson {
						strategy = locker.Must(redisson.New(drv, redisson.Config{}))
					}
					return locker.Must(holdfast.Wrap(strategy, holdfast.Config{HandOver: 10 * ms}))
				}
				near := open(clients.OpenMemory(t, m))
				far := open(openAt(t, m, tt.latency))
				ctx, stop := context.WithCancel(t.Context())
				here, there := worked{}, worked{}
				here.start(ctx, t, near, 8)
				there.start(ctx, t, far, 2)
				elapse(3 * time.Second)
				stop()
				here.all.Wait()
				there.all.Wait()
				t.Logf("near %d, far %d, longest wait %v", here.holds, there.holds, there.longest)
				check.AtLeast(t, "holds of the far process", there.holds, tt.far)
				check.AtLeast(t, "holds of the near one", here.holds, 1000)
				check.AtMost(t, "the longest wait", there.longest, 500*ms)
			})
		})
	}
}

// worked counts the acquisitions of a process's goroutines.
type worked struct {
	all     sync.WaitGroup
	mu      sync.Mutex
	holds   int
	longest time.Duration // wait
}

// start acquires in n goroutines until ctx ends, and holds for half a millisecond each time.
func (w *worked) start(ctx context.Context, t *testing.T, l locker.Locker, n int) {
	t.Helper()
	for range n {
		w.all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				lock, err := l.Acquire(ctx, locker.Request{Name: name})
				if err != nil {
					continue
				}
				w.mu.Lock()
				w.holds++
				w.longest = max(w.longest, time.Since(began))
				w.mu.Unlock()
				elapse(ms / 2)
				check.OK(t, lock.Release(context.WithoutCancel(ctx)))
			}
		})
	}
}

// openAt makes a driver for m with a latency added to its packets each way.
func openAt(t *testing.T, m *memredis.Server, latency time.Duration) driver.Driver {
	t.Helper()
	link := memnet.New()
	link.Latency = latency
	l := locker.Must(link.Listen())
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			server := locker.Must(m.Dial())
			for _, way := range [][2]net.Conn{{c, server}, {server, c}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					_ = way[0].Close()
				}()
			}
		}
	}()
	drv, closeClient, err := clients.All[0].InMemory(func() (net.Conn, error) {
		return link.Dial(context.Background(), "tcp", l.Addr().String())
	})
	check.Must(t, err)
	t.Cleanup(func() {
		check.OK(t, drv.Close())
		check.OK(t, closeClient())
	})
	return drv
}

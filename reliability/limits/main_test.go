package limits

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func TestMain(m *testing.M) { clients.VerifyNoLeaks(m) }

const (
	patience = 2 * time.Minute // for operations of seconds
	spare    = 32              // goroutines of clients, drivers and the runtime
)

// each runs f with each client, one after the other: the counts are of the whole process.
func each(t *testing.T, f func(t *testing.T, server *redistest.Server, open func() driver.Driver)) {
	t.Helper()
	for _, c := range clients.All {
		t.Run(c.Name, func(t *testing.T) {
			server := redistest.Start(t, redistest.Options{})
			f(t, server, func() driver.Driver { return c.Open(t, server.Addr()) })
			check.Eventually(t, "nothing is subscribed to", func() bool { return len(subscribed(t, server)) == 0 })
		})
	}
}

func waiting(drv driver.Driver) locker.Locker {
	return locker.Chain(locker.Must(single.New(drv, single.Config{})), locker.Must(retry.New(retry.Config{})))
}

// subscribed returns the number of channels of each subscribed connection.
func subscribed(t *testing.T, server *redistest.Server) (list []int) {
	t.Helper()
	text, _ := server.MustCommand(t, "CLIENT", "LIST").(string)
	for line := range strings.Lines(text) {
		for field := range strings.FieldsSeq(line) {
			if count, ok := strings.CutPrefix(field, "sub="); ok && count != "0" {
				list = append(list, locker.Must(strconv.Atoi(count)))
			}
		}
	}
	return list
}

// usage is the process's use after a garbage collection.
type usage struct {
	heap, stack, goroutines int
}

func measure() usage {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{int(m.HeapAlloc), int(m.StackInuse), runtime.NumGoroutine()}
}

type crowd struct {
	waits             atomic.Int64 // number of waiters so far
	acquired, gaveUp  atomic.Int64
	wg                sync.WaitGroup
	cancel            context.CancelFunc // of the waiters that give up
	patient, impaired context.Context
}

// gather starts n waiters, and returns when all wait. name returns the lock of the i-th, leaves
// whether it gives up in the end.
func gather(t *testing.T, l locker.Locker, n int, name func(i int) string, leaves func(i int) bool) *crowd {
	t.Helper()
	c := &crowd{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c.patient = ctx
	c.impaired, c.cancel = context.WithCancel(ctx)
	t.Cleanup(c.cancel)
	began := make([]atomic.Bool, n)
	for i := range n {
		c.wg.Go(func() {
			ctx := c.patient
			if leaves(i) {
				ctx = c.impaired
			}
			ctx = locktrace.With(ctx, &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) {
				if !began[i].Swap(true) {
					c.waits.Add(1)
				}
			}})
			lock, err := l.Acquire(ctx, locker.Request{Name: name(i)})
			switch {
			case err == nil:
				c.acquired.Add(1)
				check.OK(t, lock.Release(context.Background()))
			case leaves(i) && errors.Is(err, context.Canceled):
				c.gaveUp.Add(1)
			default:
				t.Errorf("Acquire: %v", err)
			}
		})
	}
	check.Eventually(t, "all wait", func() bool { return c.waits.Load() == int64(n) })
	return c
}

// report compares the use of a crowd with the use before, once the requests for subscriptions have
// ended.
func report(t *testing.T, before usage, n int) {
	t.Helper()
	most := before.goroutines + n + spare
	check.Eventually(t, "waiters have no goroutine but their own", func() bool { return runtime.NumGoroutine() <= most })
	now := measure()
	for range 5 { // commands in flight come and go
		if again := measure(); again.heap < now.heap {
			now = again
		}
	}
	t.Logf("%d waiters: %d bytes of heap and %d of stack each; %d goroutines more",
		n, (now.heap-before.heap)/n, (now.stack-before.stack)/n, now.goroutines-before.goroutines)
}

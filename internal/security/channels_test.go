package security_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/conformance/drivertest"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A waiter of a name whose channel the ACL refuses polls. It costs the waiters of other names
// neither their connection nor their wake-ups.
func TestRefusedChannelCostsOthersNothing(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	const others, refusals = 30, 20
	redistest.Need(t)
	for _, client := range clients.WithFork {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			setUser(t, server, "single", append(rule(t, "single"), alsoNeeded(t, client.Name, drivertest.Single)...))
			drv, err := dial(t, client, "single", alone(server))
			if err != nil {
				t.Fatal(err)
			}
			holders := locker.Must(single.New(client.Open(t, server.Addr()), single.Config{}))
			l := locker.Chain(locker.Must(single.New(drv, single.Config{})), locker.Must(retry.New(retry.Config{
				Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) },
			})))
			held, woken := make([]*locker.Lock, others), make(chan error, others)
			for i := range held {
				name := fmt.Sprint("lock:", i)
				subscribed := make(chan struct{})
				signal := sync.OnceFunc(func() { close(subscribed) })
				ctx := locktrace.With(t.Context(), &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
					if info.Subscribed {
						signal()
					}
				}})
				held[i] = locker.Must(holders.Acquire(ctx, locker.Request{Name: name, TTL: time.Hour}))
				go func() {
					lock, err := l.Acquire(ctx, locker.Request{Name: name, MaxWait: patience})
					woken <- errors.Join(err, lock.Release(ctx))
				}()
				<-subscribed
			}
			before, conn := subscribes(t, server), subscriber(t, server)

			tagged := "lock:{orders}:7"
			_ = locker.Must(holders.Acquire(t.Context(), locker.Request{Name: tagged, TTL: time.Hour}))
			wake, _ := driver.Sibling(tagged, driver.WakeSuffix)
			refused := func() {
				t.Helper()
				if _, err := drv.Subscribe(t.Context(), wake); driver.CodeOf(err) != "NOPERM" {
					t.Errorf("Subscribe to the tagged name's channel: %v, want NOPERM", err)
				}
			}
			refused() // first: a waiter that gives up within 10 ms may not get the answer
			for i := range refusals {
				wait := 10 * time.Millisecond
				if i == 0 {
					wait = time.Second // so that it learns that its channel is refused
				}
				_, err := l.Acquire(t.Context(), locker.Request{Name: tagged, MaxWait: wait})
				if !errors.Is(err, locker.ErrMaxWait) {
					t.Errorf("the tagged name: %v, want ErrMaxWait", err)
				}
			}
			for range refusals {
				refused()
			}
			if n := subscribes(t, server) - before; n != 2 {
				t.Errorf("%d attempts to hear of the tagged name: %d SUBSCRIBEs, want one for each of two channels", 2*refusals+1, n)
			}
			if now := subscriber(t, server); now != conn {
				t.Errorf("the subscriber connections were %s, and are %s now", conn, now)
			}
			for _, lock := range held {
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			for range held {
				if err := <-woken; err != nil {
					t.Errorf("who waits for another name: %v", err)
				}
			}
		})
	}
}

// subscribes returns how many SUBSCRIBEs the server got, including refused ones.
func subscribes(t *testing.T, server *redistest.Server) int {
	t.Helper()
	return stat(t, server, "commandstats", `cmdstat_subscribe:calls=(\d+)`) +
		stat(t, server, "commandstats", `cmdstat_subscribe:.*rejected_calls=(\d+)`)
}

// subscriber returns the connections in subscriber state.
func subscriber(t *testing.T, server *redistest.Server) string {
	t.Helper()
	list := fmt.Sprint(server.MustCommand(t, "CLIENT", "LIST", "TYPE", "pubsub"))
	return fmt.Sprint(regexp.MustCompile(`(?m)^id=\d+ addr=\S+`).FindAllString(list, -1))
}

// stat returns a number of a section of INFO; 0 if it is missing.
func stat(t *testing.T, server *redistest.Server, section, pattern string) int {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(strings.ReplaceAll(fmt.Sprint(server.MustCommand(t, "INFO", section)), "\r", ""))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

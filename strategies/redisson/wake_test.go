package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/strategies/internal/locktest"
	"github.com/holdfast-go/holdfast/strategies/redisson"
)

// The message of an unlock in Java wakes a waiter.
func TestUnlockInJavaWakes(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		b.javaHolds("1", time.Hour)
		waits, woken := make(chan struct{}, 1), make(chan locktrace.WakeReason, 9)
		ctx := locktrace.With(t.Context(), &locktrace.Trace{
			Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
				if info.Subscribed {
					select {
					case waits <- struct{}{}:
					default:
					}
				}
			},
			Woken: func(_ context.Context, info locktrace.WokenInfo) { woken <- info.By },
		})
		l := locker.Must(holdfast.Wrap(b.Locker, holdfast.Config{}))
		got := make(chan *locker.Lock, 1)
		go func() { got <- locker.Must(l.Acquire(ctx, locker.Request{Name: name})) }()
		<-waits
		for len(woken) > 0 {
			<-woken
		}
		b.m.Del(name)
		check.Equal(t, "receivers", b.m.Publish(channel, "0"), 1)
		lock := <-got
		check.Equal(t, "reason", <-woken, locktrace.ByRelease)
		release(t, lock)
	})
}

// A release without a message, as of an RSpinLock, is found by polling.
func TestSilentReleaseIsFound(t *testing.T) {
	run(t, func(t *testing.T, b bench) {
		b.javaHolds("1", time.Hour)
		waits := make(chan struct{}, 1)
		ctx := locktrace.With(t.Context(), &locktrace.Trace{Waiting: func(_ context.Context, info locktrace.WaitingInfo) {
			select {
			case waits <- struct{}{}:
			default:
			}
		}})
		l := locker.Must(holdfast.Wrap(b.Locker, holdfast.Config{}))
		got := make(chan *locker.Lock, 1)
		go func() { got <- locker.Must(l.Acquire(ctx, locker.Request{Name: name})) }()
		<-waits
		locktest.Sleep(time.Minute) // polls become rare
		b.m.Del(name)
		begin := time.Now()
		lock := <-got
		check.AtMost(t, "time until the poll", time.Since(begin), time.Second)
		release(t, lock)
	})
}

// through is a driver whose subscriptions get messages in another way.
type through struct {
	driver.Driver
	delivery driver.Delivery
}

func (d through) Delivery(string) driver.Delivery { return d.delivery }

// A release publishes by SPUBLISH in a cluster, by PUBLISH at a single server, and by both if the
// driver does not know.
func TestReleaseIsPublished(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	if _, err := server.Command("SPUBLISH", channel, ""); err != nil {
		t.Skip("the server has no sharded channels")
	}
	drv := clients.All[0].Open(t, server.Addr())
	conn, err := server.Dial(t.Context())
	check.Must(t, err)
	defer conn.Close()
	for _, command := range []string{"SUBSCRIBE", "SSUBSCRIBE"} {
		check.Must(t, check.ErrOf(conn.Do(command, channel)))
	}
	for delivery, want := range map[driver.Delivery][]string{
		driver.DeliveryPlain: {"message", "smessage"}, driver.DeliveryCounted: {"message"}, driver.DeliverySharded: {"smessage"},
	} {
		l := locker.Must(redisson.New(through{drv, delivery}, redisson.Config{}))
		lock := locker.Must(l.Acquire(t.Context(), locker.Request{Name: name}))
		release(t, lock)
		server.MustCommand(t, "PUBLISH", channel, "end")
		var got []string
		for {
			v, err := conn.Receive()
			check.Must(t, err)
			words := v.Args()
			if words[len(words)-1] == "end" {
				break
			}
			check.Equal(t, "message", words[len(words)-1], "0")
			got = append(got, words[0])
		}
		check.Equal(t, "messages", len(got), len(want))
		for i := range min(len(got), len(want)) {
			check.Equal(t, "message", got[i], want[i])
		}
	}
}

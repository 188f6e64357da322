//nolint:forbidigo // fake time
package retry_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// A wait that was refused repeatedly ends as refused, with the holder, though a reply is still
// missing when MaxWait passes.
func TestMaxWaitOnASlowLink(t *testing.T) {
	t.Parallel()
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { maxWaitOnASlowLink(t, client) })
		})
	}
}

func maxWaitOnASlowLink(t *testing.T, client clients.Client) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // what closed clients leave behind ends
	network := memnet.New()
	network.Latency = 50 * time.Microsecond
	server := memredis.Start(t, network)
	key := "slow." + client.Name
	other := locker.Must(single.New(client.OpenOn(t, network, server.Addr()), single.Config{}))
	held, err := other.Acquire(t.Context(), locker.Request{Name: key, Owner: "w7", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	p := faultproxy.StartOn(t, network, server.Addr())
	bare := locker.Must(single.New(client.OpenOn(t, network, p.Addr()), single.Config{}))
	l := wrap(t, bare, retry.Config{Policy: constant(5 * time.Millisecond)})
	var wg sync.WaitGroup
	for range 30 { // opens the connections: to dial one takes several round trips
		wg.Go(func() { _, _ = bare.Acquire(t.Context(), locker.Request{Name: key, NoWait: true}) })
	}
	wg.Wait()
	p.Latency(30 * time.Millisecond)
	for i := range 30 {
		wg.Go(func() {
			req := locker.Request{Name: key, MaxWait: 3*time.Second + time.Duration(i)*7*time.Millisecond}
			ran, err := locker.Try(t.Context(), l, req, func(context.Context, *locker.Lock) error { return nil })
			if ran || err != nil {
				t.Errorf("Try with MaxWait %v: %v, %v; want false, nil", req.MaxWait, ran, err)
			}
			_, err = l.Acquire(t.Context(), req)
			match(t, err, []error{locker.ErrNotAcquired, locker.ErrMaxWait}, []error{locker.ErrUnknownOutcome})
		})
	}
	wg.Wait()
	match(t, held.Release(t.Context()), nil, nil)
}

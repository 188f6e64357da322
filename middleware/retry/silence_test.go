//nolint:forbidigo // fake time
package retry_test

import (
	"context"
	"errors"
	"strings"
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
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

// A waiter behind one whose server has been silent for a second reports an outage, also through
// Try.
func TestWaitingBehindASilentServer(t *testing.T) {
	t.Parallel()
	for _, client := range clients.All {
		t.Run(client.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { waitingBehindASilentServer(t, client) })
		})
	}
}

func waitingBehindASilentServer(t *testing.T, client clients.Client) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // what closed clients leave behind ends
	network := memnet.New()
	network.Latency = 50 * time.Microsecond
	server := memredis.Start(t, network)
	p := faultproxy.StartOn(t, network, server.Addr())
	drv := client.OpenOn(t, network, p.Addr())
	renewed := locker.Must(watchdog.New(watchdog.Config{}))(locker.Must(single.New(drv, single.Config{})))
	began := make(chan struct{}, 1)
	l := wrap(t, locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		select {
		case began <- struct{}{}:
		default:
		}
		return renewed.Acquire(ctx, req)
	}), retry.Config{Policy: constant(10 * time.Millisecond)})
	other := locker.Must(single.New(client.OpenOn(t, network, server.Addr()), single.Config{}))
	held, err := other.Acquire(t.Context(), locker.Request{Name: client.Name, Owner: "w7", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	leader := make(chan error, 1)
	go func() { _, err := l.Acquire(ctx, locker.Request{Name: client.Name}); leader <- err }()
	<-began // refused
	<-began
	p.Freeze()
	ran, err := locker.Try(t.Context(), l, locker.Request{Name: client.Name, MaxWait: 4 * time.Second},
		func(context.Context, *locker.Lock) error { return nil })
	if ran {
		t.Error("Try ran beside the holder")
	}
	match(t, err, []error{locker.ErrMaxWait}, []error{locker.ErrNotAcquired, locker.ErrUnknownOutcome})
	silent, ok := errors.AsType[*locker.AttemptError](err)
	if !ok || silent.Server != drv.Info().Address || silent.Took < time.Second || !strings.Contains(err.Error(), `owner "w7"`) {
		t.Errorf("error %v, want the silence of %q and what was known", err, drv.Info().Address)
	}
	p.Thaw()
	cancel()
	match(t, <-leader, []error{context.Canceled}, nil)
	match(t, held.Release(t.Context()), nil, nil)
}

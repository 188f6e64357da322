//realtime:ok in the bubbles of clients

package rueidis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// operations are the calls with a command.
var operations = []func(ctx context.Context, drv driver.Driver, key string) error{
	func(ctx context.Context, drv driver.Driver, key string) error {
		_, err := drv.SetNX(ctx, key, "v", time.Minute)
		return err
	},
	func(ctx context.Context, drv driver.Driver, key string) error {
		_, err := drv.Eval(ctx, compare, []string{key}, []string{"v"})
		return err
	},
	func(ctx context.Context, drv driver.Driver, key string) error {
		_, _, err := drv.EvalAcked(ctx, compare, []string{key}, []string{"v"}, 1, patience/2)
		return err
	},
	func(ctx context.Context, drv driver.Driver, key string) error {
		_, err := drv.Subscribe(ctx, key)
		return err
	},
}

// workers makes one call about key from each of n goroutines, of so many kinds of operations, and
// returns their errors once all have returned.
func workers(ctx context.Context, drv driver.Driver, n, kinds int, key string) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = operations[i%kinds](ctx, drv, key) })
	}
	wg.Wait()
	return errs
}

// login makes a client introduce itself and wait for the answer, even with RESP2.
func login(m *memredis.Server, opts redis.ClientOption) redis.ClientOption {
	opts.Password = "secret"
	m.RequireAuth(opts.Password)
	return opts
}

// A dead connection is silent: commands on it get no answer, and the client's ping is an hour away.
// Other calls are answered at once, over a few new connections.
func TestDeadConnection(t *testing.T) {
	t.Parallel()
	check.Each(t, clientModes, func(t *testing.T, set func(*redis.ClientOption)) {
		clients.Bubble(t, func(t *testing.T) {
			m, p := clients.Proxied(t)
			opts := single(m.Net.Dial, p.Addr())
			set(&opts)
			opts.ConnWriteTimeout, opts.Dialer.Timeout = forever, forever
			drv := dial(t, opts)
			t.Cleanup(p.CutAll)
			answered(t, drv, 100)
			conns := p.Conns()
			lost := p.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "lost"), Fault: faultproxy.DropReply})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if _, err := drv.SetNX(ctx, "lost", "v", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("SetNX whose reply is lost: %v, want DeadlineExceeded", err)
			}
			<-lost.Hit()
			began := time.Now()
			later, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			soon := bounded.New(context.Background(), patience)
			defer soon.Stop()
			for _, ctx := range []context.Context{soon, later} {
				for i, err := range workers(ctx, drv, 64, 2, "lost") {
					if err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				}
			}
			if took := time.Since(began); took > patience/2 {
				t.Errorf("calls took %v", took)
			}
			if n := p.Conns() - conns; n > 16 {
				t.Errorf("%d connections were added; want 16 at most", n)
			}
		})
	})
}

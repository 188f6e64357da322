package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
)

// confirm answers SUBSCRIBE and UNSUBSCRIBE.
func confirm(words []string) string {
	return fmt.Sprintf("*3\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n:1\r\n", len(words[0]), words[0], len(words[1]), words[1])
}

// A connection that takes no more bytes delays no caller that subscribes or leaves.
func TestStuckConnectionHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		awake := make(chan struct{})
		defer close(awake)
		f := &fake{answer: func(words []string) string {
			if words[1] == "stuck" {
				<-awake // reads no more
				return hangUp
			}
			return confirm(words)
		}}
		opts := f.options()
		opts.WriteTimeout = time.Hour
		drv := newDriver(t, redis.NewClient(opts))
		first, err := drv.Subscribe(t.Context(), "first")
		check.Must(t, err)
		synctest.Wait()
		started := time.Now()
		for i, channel := range []string{"stuck", "waits for it", "too"} {
			ctx := bounded.New(context.Background(), patience)
			_, err := drv.Subscribe(ctx, channel)
			ctx.Stop()
			if took, want := time.Since(started), time.Duration(i+1)*patience; took != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v after %v, want DeadlineExceeded after %v", channel, err, took, want)
			}
		}
		started = time.Now()
		if err := first.Close(); err != nil || time.Since(started) != 0 {
			t.Errorf("Subscription.Close: %v after %v", err, time.Since(started))
		}
		if err := drv.Close(); err != nil || time.Since(started) != 0 {
			t.Errorf("Close: %v after %v", err, time.Since(started))
		}
	})
}

// A PubSub that loses its connection dials and subscribes again silently. Ours must not: a listener
// must learn of a possibly lost message, and the hub would dial a second time. Over a cluster there
// are two connections, one of them for SSUBSCRIBE.
func TestPubSubDoesNotReconnectByItself(t *testing.T) {
	t.Parallel()
	check.Each(t, kinds, func(t *testing.T, kind func(*redis.Options) redis.UniversalClient) {
		clients.Bubble(t, func(t *testing.T) {
			f := &fake{answer: confirm}
			opts := f.options()
			var mu sync.Mutex
			var conns []net.Conn
			opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := f.dial(ctx, network, addr)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					conns = append(conns, conn)
				}
				return conn, err
			}
			client := kind(opts)
			drv := newDriver(t, client)
			each, sharded := 1, 0
			if _, cluster := client.(*redis.ClusterClient); cluster {
				each, sharded = 2, 4
			}
			sub, err := drv.Subscribe(t.Context(), "c")
			check.Must(t, err)
			<-sub.Wake() // of the first confirmation
			for n := 1; n <= 3; n++ {
				<-time.After(4 * time.Second) // the hub probes after 5 s
				mu.Lock()
				if len(conns) != n*each {
					t.Fatalf("%d connections were dialed, want %d", len(conns), n*each)
				}
				for _, conn := range conns {
					_ = conn.Close()
				}
				mu.Unlock()
				<-sub.Wake()
			}
			<-time.After(4 * time.Second)
			if n := f.count("SUBSCRIBE"); n != 4 {
				t.Errorf("subscribed %d times, want 4", n)
			}
			if n := f.count("SSUBSCRIBE"); n != sharded {
				t.Errorf("subscribed by SSUBSCRIBE %d times, want %d", n, sharded)
			}
		})
	})
}

// A late connection is closed.
func TestLateConnectionIsClosed(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		f := &fake{answer: confirm}
		opts := f.options()
		dial := opts.Dialer
		opts.Dialer = func(_ context.Context, network, addr string) (net.Conn, error) {
			<-time.After(2 * patience)
			return dial(context.Background(), network, addr)
		}
		drv := newDriver(t, redis.NewClient(opts))
		ctx := bounded.New(context.Background(), patience)
		defer ctx.Stop()
		if _, err := drv.Subscribe(ctx, "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Subscribe: %v, want DeadlineExceeded", err)
		}
		check.Must(t, drv.Close())
		<-time.After(2 * patience)
		synctest.Wait()
		check.Equal(t, "open connections", f.conns.Load(), 0)
	})
}

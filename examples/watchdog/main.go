// Watchdog: work that takes longer than the TTL keeps its lock, and a holder that hangs loses it.
// The client is go-redis. It takes ten seconds.
//
//	go run ./examples/watchdog                              an embedded server: nothing but Go is needed
//	go run ./examples/watchdog -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
	"github.com/holdfast-go/holdfast/strategies/watchdog"
)

const ttl = 3 * time.Second / 2

func main() {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "watchdog: takes no arguments; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *url)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "watchdog:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	if url == "" {
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer server.Close()
		server.ClockTTL(true) // without it, keys do not expire by themselves
		url = "redis://" + server.Addr()
	}
	logging.Disable() // go-redis would log to standard error
	opts, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	opts.ContextTimeoutEnabled = true // let calls end with their context
	client := redis.NewClient(opts)
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		return err
	}
	drv, err := goredis.New(client)
	if err != nil {
		return err
	}
	defer drv.Close()

	bare, err1 := single.New(drv, single.Config{Prefix: "example:"})
	dog, err2 := watchdog.New(watchdog.Config{MaxHold: 3 * ttl})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return compare(ctx, bare, locker.Chain(bare, dog))
}

func compare(ctx context.Context, bare, watched locker.Locker) error {
	err := locker.Do(ctx, bare, locker.Request{Name: "import", TTL: ttl}, work(2*ttl))
	fmt.Println("work for two TTLs, not watched: lost:", errors.Is(err, locker.ErrLost))

	var renewals atomic.Int32
	counted := locktrace.With(ctx, &locktrace.Trace{
		Renewed: func(context.Context, locktrace.RenewedInfo) { renewals.Add(1) },
	})
	err = locker.Do(counted, watched, locker.Request{Name: "import", TTL: ttl}, work(2*ttl))
	fmt.Println("work for two TTLs, watched: error:", err)
	fmt.Println("renewed at least four times:", renewals.Load() >= 4)

	err = locker.Do(ctx, watched, locker.Request{Name: "import", TTL: ttl}, work(time.Hour))
	fmt.Println("work that hangs, watched: ended by MaxHold:", errors.Is(err, watchdog.ErrMaxHold))
	return ctx.Err()
}

// work returns a function that works for d, or until its context ends with the lock.
func work(d time.Duration) func(context.Context, *locker.Lock) error {
	return func(ctx context.Context, _ *locker.Lock) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

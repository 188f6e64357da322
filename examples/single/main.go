// Single: one instance of a service at a time makes a report. The client is go-redis.
//
//	go run ./examples/single                              an embedded server: nothing but Go is needed
//	go run ./examples/single -redis redis://host:6379     the same on a real server
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func main() {
	url := flag.String("redis", "", "`URL` of a server, redis://[user:password@]host:port[/db]; empty: an embedded one")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "single: takes no arguments; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *url)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "single:", err)
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

	// Two instances, each with a Locker. A bare strategy makes one attempt and does not wait.
	one, err1 := single.New(drv, single.Config{Prefix: "example:"})
	two, err2 := single.New(drv, single.Config{Prefix: "example:"})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return report(ctx, one, two)
}

func report(ctx context.Context, one, two locker.Locker) error {
	req := locker.Request{Name: "report", TTL: 30 * time.Second, Fenced: true}

	req.Owner, req.Note = "instance one", "makes the report"
	first, err := one.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("instance one holds", first.Name())

	req.Owner, req.Note = "instance two", ""
	_, err = two.Acquire(ctx, req)
	var held *locker.ContentionError
	if !errors.As(err, &held) { // for example, the server is down
		return fmt.Errorf("instance two: %w", err)
	}
	fmt.Printf("instance two is refused: %s %s\n", held.Owner, held.Note)

	if err := first.Release(ctx); err != nil {
		return err
	}
	second, err := two.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("instance two holds", second.Name())

	// Late writes of instance one are refused by the storage: its fencing token is older.
	stored := second.Fence()
	fmt.Println("a late write of instance one counts:", first.Fence() >= stored)
	fmt.Println("instance one knows:", first.Err())
	return second.Release(ctx)
}

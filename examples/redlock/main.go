// Redlock: a lock that outlives a server. It is held where three of five servers hold it. The
// client is go-redis.
//
//	go run ./examples/redlock                                                   embedded servers: nothing but Go is needed
//	go run ./examples/redlock -redis redis://a:6379,redis://b:6379,redis://c:6379,...     the same on real ones, three or more
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func main() {
	urls := flag.String("redis", "", "`URLs` of the servers, with commas, redis://[user:password@]host:port[/db]; empty: embedded ones")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "redlock: takes no arguments; see -help")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *urls)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "redlock:", err)
		os.Exit(1)
	}
}

// node is one server of the quorum.
type node struct {
	locker locker.Locker
	stop   func() error // takes the server away
	close  func()       // closes the driver, the client and an embedded server
}

func run(ctx context.Context, urls string) error {
	logging.Disable() // go-redis would log to standard error
	servers := make([]string, 5)
	if urls != "" {
		servers = strings.Split(urls, ",")
	}
	if slices.Contains(servers, "") && urls != "" {
		return fmt.Errorf("-redis %q has an empty URL", urls)
	}
	var nodes []*node
	defer func() {
		for _, n := range nodes {
			n.close()
		}
	}()
	for _, url := range servers {
		n, err := connect(ctx, url)
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	return settle(ctx, nodes)
}

// connect makes a node of the server at url, or of an embedded one if url is empty.
func connect(ctx context.Context, url string) (*node, error) {
	var server *miniredis.Miniredis
	if url == "" {
		server = miniredis.NewMiniRedis()
		if err := server.Start(); err != nil {
			return nil, err
		}
		server.ClockTTL(true) // without it, keys do not expire by themselves
		url = "redis://" + server.Addr()
	}
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	opts.ContextTimeoutEnabled = true // let calls end with their context
	client := redis.NewClient(opts)
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, err
	}
	drv, err := goredis.New(client)
	if err != nil {
		return nil, err
	}
	l, err := single.New(drv, single.Config{Prefix: "example:"})
	if err != nil {
		return nil, err
	}
	n := &node{locker: l, stop: drv.Close} // a real server is not ours to stop
	if server != nil {
		n.stop = func() error { server.Close(); return nil }
	}
	n.close = func() {
		_ = drv.Close()
		_ = client.Close()
		if server != nil {
			server.Close()
		}
	}
	return n, nil
}

func settle(ctx context.Context, nodes []*node) error {
	var singles []locker.Locker
	for _, n := range nodes {
		singles = append(singles, n.locker)
	}
	quorum, err := redlock.New(singles, redlock.Config{})
	if err != nil {
		return err
	}
	waiting, err := holdfast.Wrap(quorum, holdfast.Config{}) // around the quorum, not around its nodes
	if err != nil {
		return err
	}
	req := locker.Request{
		Name: "settlement", Owner: "night", TTL: 30 * time.Second, MaxWait: time.Minute, Fenced: true,
	}

	night, err := waiting.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("night holds:", night.Err())

	err = nodes[0].stop()
	fmt.Println("one server is gone:", err)
	fmt.Println("night renews:", night.Renew(ctx, 0))
	_, err = quorum.Acquire(ctx, locker.Request{Name: "settlement", NoWait: true})
	fmt.Println("night holds on, others are refused:", errors.Is(err, locker.ErrNotAcquired))
	fmt.Println("night releases:", night.Release(ctx))
	req.Owner = "day"
	day, err := waiting.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("day holds, with a higher fencing token:", day.Fence() > night.Fence())
	fmt.Println("day releases:", day.Release(ctx))

	for _, n := range nodes[1 : len(nodes)/2+1] {
		err = errors.Join(err, n.stop())
	}
	fmt.Println("no quorum is left:", err)
	_, err = quorum.Acquire(ctx, locker.Request{Name: "settlement", NoWait: true})
	var outage *redlock.QuorumError
	fmt.Println("an outage, not a refusal:", errors.As(err, &outage) && !errors.Is(err, locker.ErrNotAcquired))
	return ctx.Err()
}

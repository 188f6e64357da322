package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// independent starts servers and makes a Locker over each. In production they are masters on
// machines with nothing shared.
func independent(n int) (servers []*miniredis.Miniredis, nodes []locker.Locker, stop func()) {
	var stops []func()
	for range n {
		server := miniredis.NewMiniRedis()
		if err := server.Start(); err != nil {
			panic(err)
		}
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		drv := locker.Must(goredis.New(client))
		servers, nodes = append(servers, server), append(nodes, locker.Must(single.New(drv, single.Config{})))
		stops = append(stops, func() {
			_ = drv.Close()
			_ = client.Close()
			server.Close()
		})
	}
	return servers, nodes, func() {
		for _, f := range stops {
			f()
		}
	}
}

// A lock at three servers survives the loss of one. With two gone it is an outage, and no refusal.
func Example() {
	servers, nodes, stop := independent(3)
	defer stop()
	ctx := context.Background()
	quorum := locker.Must(redlock.New(nodes, redlock.Config{Names: []string{"paris", "oslo", "rome"}}))
	l := locker.Chain(quorum, locker.Must(retry.New(retry.Config{}))) // around the quorum, not around the nodes
	req := locker.Request{Name: "report:42", TTL: 30 * time.Second, Owner: "worker-1", Fenced: true}

	lock, err := l.Acquire(ctx, req)
	if err != nil {
		panic(err)
	}
	_, err = l.Acquire(ctx, locker.Request{Name: "report:42", NoWait: true})
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("held by", held.Owner)
	}
	fmt.Println("release:", lock.Release(ctx))

	servers[2].Close()
	again, err := l.Acquire(ctx, req)
	fmt.Println("without rome:", err)
	fmt.Println("a higher fencing token:", again.Fence() > lock.Fence())
	fmt.Println("release:", again.Release(ctx))

	servers[1].Close()
	req.NoWait = true
	_, err = l.Acquire(ctx, req)
	if missed, ok := errors.AsType[*redlock.QuorumError](err); ok {
		fmt.Printf("%d of %d nodes needed; held by another: %v\n", missed.Needed, missed.Of, errors.Is(err, locker.ErrNotAcquired))
		for _, n := range missed.Nodes {
			if n.Name != "paris" { // paris need not have answered by then
				fmt.Println("failed:", n.Name)
			}
		}
	}
	// Output:
	// held by worker-1
	// release: <nil>
	// without rome: <nil>
	// a higher fencing token: true
	// release: <nil>
	// 2 of 3 nodes needed; held by another: false
	// failed: oslo
	// failed: rome
}

// While a team moves from one server to another, its programs lock at both: a program on either
// server alone is kept out.
func Example_move() {
	_, nodes, stop := independent(2)
	defer stop()
	ctx := context.Background()
	before, after := nodes[0], nodes[1]
	both := locker.Must(redlock.New(nodes, redlock.Config{Quorum: 2}))
	req := locker.Request{Name: "report:42", TTL: 30 * time.Second}

	lock, err := both.Acquire(ctx, req)
	fmt.Println("both:", err)
	for _, l := range []locker.Locker{before, after} {
		_, err := l.Acquire(ctx, req)
		fmt.Println("either is refused:", errors.Is(err, locker.ErrNotAcquired))
	}
	fmt.Println("release:", lock.Release(ctx))

	old, err := before.Acquire(ctx, req)
	fmt.Println("one that has not moved:", err)
	_, err = both.Acquire(ctx, req)
	fmt.Println("both are refused:", errors.Is(err, locker.ErrNotAcquired))
	fmt.Println("release:", old.Release(ctx))
	// Output:
	// both: <nil>
	// either is refused: true
	// either is refused: true
	// release: <nil>
	// one that has not moved: <nil>
	// both are refused: true
	// release: <nil>
}

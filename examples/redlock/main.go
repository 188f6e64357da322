// Redlock: a lock that outlives a server. It is held where three of five hold it, each reached by another client.
//
//	go run ./examples/redlock                                                   embedded servers: nothing but Go is needed
//	go run ./examples/redlock -redis redis://a:6379,redis://b:6379,redis://c:6379,...     the same on real ones, three or more
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/examples/internal/clients"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func main() { demo.Nodes("redlock", 5, run) }

func run(ctx context.Context, nodes clients.Nodes) error {
	var singles []locker.Locker
	for _, n := range nodes {
		l, err := single.New(n.Driver, single.Config{Prefix: "example:"})
		if err != nil {
			return err
		}
		singles = append(singles, l)
	}
	quorum, err := redlock.New(singles, redlock.Config{})
	if err != nil {
		return err
	}
	waiting := locker.Chain(quorum, locker.Must(retry.New(retry.Config{}))) // around the quorum, not inside of it
	req := locker.Request{Name: "settlement", Owner: "night", TTL: 10 * time.Second, MaxWait: 5 * time.Second, Fenced: true}

	night, err := waiting.Acquire(ctx, req)
	if err != nil {
		return err
	}
	fmt.Println("night holds:", night.Err())

	err = nodes[0].Stop()
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
		err = errors.Join(err, n.Stop())
	}
	fmt.Println("no quorum is left:", err)
	_, err = quorum.Acquire(ctx, locker.Request{Name: "settlement", NoWait: true})
	var outage *redlock.QuorumError
	fmt.Println("an outage, not a refusal:", errors.As(err, &outage) && !errors.Is(err, locker.ErrNotAcquired))
	return ctx.Err()
}

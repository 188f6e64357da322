package reentrant_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// Nested work re-enters: Do's ctx carries the owner.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()

	l := locker.Must(reentrant.New(drv, reentrant.Config{}))
	req := locker.Request{Name: "account:7"}
	err = locker.Do(context.Background(), l, req, func(ctx context.Context, _ *locker.Lock) error {
		return locker.Do(ctx, l, req, func(ctx context.Context, _ *locker.Lock) error {
			state, err := l.Inspect(ctx, "account:7")
			fmt.Println("holds:", state.Holds)
			return err
		})
	})
	fmt.Println(err)
	// Output:
	// holds: 2
	// <nil>
}

// A named owner can enter from anywhere. The lock is free when the last of its holds ends.
func Example_owner() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()

	ctx := context.Background()
	l := locker.Must(reentrant.New(drv, reentrant.Config{}))
	req := locker.Request{Name: "order:42", Owner: "saga-9", Note: "payment"}
	first := locker.Must(l.Acquire(ctx, req))
	second := locker.Must(l.Acquire(ctx, req))

	fmt.Println("release:", first.Release(ctx))
	_, err = l.Acquire(ctx, locker.Request{Name: "order:42", Owner: "saga-10"})
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("held by", held.Owner, "for", held.Note)
	}
	fmt.Println("release:", second.Release(ctx))
	// Output:
	// release: <nil>
	// held by saga-9 for payment
	// release: <nil>
}

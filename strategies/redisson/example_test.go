package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redisson"
)

// A thread in Java holds the lock, as by getLock("invoice:42").lock(), and then unlocks it.
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

	ctx := context.Background()
	l := locker.Must(redisson.New(drv, redisson.Config{}))
	req := locker.Request{Name: "invoice:42", NoWait: true}

	server.HSet("invoice:42", "2f1c0e5a-8d8e-4f43-9a41-7f8d6b7f0c11:77", "1")
	server.SetTTL("invoice:42", 30*time.Second)
	_, err = l.Acquire(ctx, req)
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("another library holds it:", held.Foreign, "for", held.Left)
	}

	server.Del("invoice:42")
	lock := locker.Must(l.Acquire(ctx, req))
	fmt.Println("release:", lock.Release(ctx))
	// Output:
	// another library holds it: true for 30s
	// release: <nil>
}

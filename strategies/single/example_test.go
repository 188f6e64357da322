package single_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

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
	l := locker.Must(single.New(drv, single.Config{}))
	lock, err := l.Acquire(ctx, locker.Request{Name: "report:42", TTL: 30 * time.Second, Owner: "worker-1", Note: "nightly"})
	if err != nil {
		panic(err)
	}

	_, err = l.Acquire(ctx, locker.Request{Name: "report:42"})
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("held by", held.Owner, "for", held.Note)
	}
	fmt.Println("release:", lock.Release(ctx))
	fmt.Println("again:", lock.Release(ctx))
	// Output:
	// held by worker-1 for nightly
	// release: <nil>
	// again: holdfast: release "report:42": lock was released
}

// The fencing token increases with each tenure. A resource that must not be written late checks it
// at the write.
func Example_fencing() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()

	l := locker.Must(single.New(drv, single.Config{Prefix: "lock:"}))
	req := locker.Request{Name: "account:7", Fenced: true}
	var first, second int64
	for _, fence := range []*int64{&first, &second} {
		err := locker.Do(context.Background(), l, req, func(_ context.Context, lock *locker.Lock) error {
			*fence = lock.Fence()
			return nil
		})
		if err != nil {
			panic(err)
		}
	}
	fmt.Println(first > 0, second > first)
	// Output: true true
}

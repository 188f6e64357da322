package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	addr := server.Addr()

	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))

	req := locker.Request{Name: "invoice:42", TTL: 30 * time.Second, MaxWait: 5 * time.Second}
	err = locker.Do(context.Background(), l, req, func(ctx context.Context, lock *locker.Lock) error {
		fmt.Println("working on", lock.Name()) // ctx ends when the lock is lost
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// working on invoice:42
	// error: <nil>
}

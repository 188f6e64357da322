package rwhash_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// A writer that has finished writing goes on as a reader: others may read too, and no one writes in
// between.
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
	l := locker.Must(rwhash.New(drv, rwhash.Config{}))
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "catalogue", Owner: "import"}))
	_, err = l.Acquire(ctx, locker.Request{Name: "catalogue", Mode: locker.Shared})
	fmt.Println("reader refused:", errors.Is(err, locker.ErrNotAcquired))

	fmt.Println("downgrade:", lock.Downgrade(ctx))
	reader := locker.Must(l.Acquire(ctx, locker.Request{Name: "catalogue", Mode: locker.Shared, Owner: "web"}))
	err = lock.Upgrade(ctx)
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("upgrade refused, still a reader:", held.Owner, "reads too")
	}
	fmt.Println("release:", reader.Release(ctx))
	fmt.Println("upgrade:", lock.Upgrade(ctx), lock.Mode())
	fmt.Println("release:", lock.Release(ctx))
	// Output:
	// reader refused: true
	// downgrade: <nil>
	// upgrade refused, still a reader: web reads too
	// release: <nil>
	// upgrade: <nil> exclusive
	// release: <nil>
}

package redigo_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/holdfast-go/holdfast/providers/redigo"
)

func ExampleNew() {
	server := miniredis.NewMiniRedis() // stands for your Redis
	if err := server.Start(); err != nil {
		log.Panic(err)
	}
	defer server.Close()

	pool := &redis.Pool{
		MaxIdle: 16,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", server.Addr())
		},
	}
	defer pool.Close()
	drv, err := redigo.New(pool)
	if err != nil {
		log.Panic(err)
	}
	defer drv.Close()

	for range 2 {
		set, err := drv.SetNX(context.Background(), "job", "token", 30*time.Second)
		fmt.Println(set, err)
	}
	// Output:
	// true <nil>
	// false <nil>
}

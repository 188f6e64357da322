package goredis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/providers/goredis"
)

func ExampleNew() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	drv, err := goredis.New(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer drv.Close() // the client stays open

	// Strategies do this; programs give drv to one.
	for _, token := range []string{"mine", "yours"} {
		set, err := drv.SetNX(context.Background(), "report", token, 30*time.Second)
		fmt.Println(token, set, err)
	}
	fmt.Println(drv.Info().Client)
	// Output:
	// mine true <nil>
	// yours false <nil>
	// go-redis
}

package rueidis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/alicebob/miniredis/v2"
	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/providers/rueidis"
)

func ExampleNew() {
	server := miniredis.NewMiniRedis() // stands for your Redis
	if err := server.Start(); err != nil {
		log.Panic(err)
	}
	defer server.Close()

	client, err := redis.NewClient(redis.ClientOption{
		InitAddress:  []string{server.Addr()},
		DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true, // needed by miniredis
	})
	if err != nil {
		log.Panic(err)
	}
	defer client.Close()
	drv, err := rueidis.New(client)
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

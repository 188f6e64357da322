package holdfast_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

func Example() {
	server := locker.Must(miniredis.Run())
	defer server.Close()
	addr := server.Addr()

	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()
	l := locker.Must(holdfast.New(drv, holdfast.Config{}))

	req := locker.Request{Name: "invoice:42", TTL: 30 * time.Second, MaxWait: time.Minute}
	err := locker.Do(context.Background(), l, req, func(ctx context.Context, lock *locker.Lock) error {
		fmt.Println("working on", lock.Name()) // ctx ends when the lock is lost
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// working on invoice:42
	// error: <nil>
}

// A lock at more than half of five servers outlives any two of them.
func Example_quorum() {
	var drivers []driver.Driver
	var servers []*miniredis.Miniredis
	for range 5 {
		server, err := miniredis.Run()
		if err != nil {
			panic(err)
		}
		defer server.Close()
		client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
		defer client.Close()
		drv := locker.Must(goredis.New(client))
		defer drv.Close()
		servers, drivers = append(servers, server), append(drivers, drv)
	}

	nodes := make([]locker.Locker, len(drivers)) // a driver for each server, of any provider
	for i, drv := range drivers {
		nodes[i] = locker.Must(single.New(drv, single.Config{}))
	}
	quorum := locker.Must(redlock.New(nodes, redlock.Config{}))
	l := locker.Must(holdfast.Wrap(quorum, holdfast.Config{}))

	servers[0].Close()
	servers[3].Close()
	err := locker.Do(context.Background(), l, locker.Request{Name: "invoice:42"}, func(_ context.Context, lock *locker.Lock) error {
		fmt.Println("working on", lock.Name())
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// working on invoice:42
	// error: <nil>
}

// rueidis.NewClient connects at once. With ForceSingleClient it returns the client along with the
// error, and the client connects when it is used. So a program starts while a minority of the
// servers of its quorum is down.
func Example_quorumWithAServerDown() {
	connect := func(addr string) (rueidisclient.Client, error) {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{addr}, ForceSingleClient: true,
		})
		if client == nil {
			return nil, err // the options are wrong
		}
		if err != nil {
			fmt.Println("going on without a server") // log the error here
		}
		return client, nil
	}
	client, err := connect("127.0.0.1:1") // nobody listens there
	if err != nil {
		panic(err)
	}
	defer client.Close()
	drv := locker.Must(rueidis.New(client))
	defer drv.Close()
	fmt.Println("node:", drv.Info().Address)
	// Output:
	// going on without a server
	// node: 127.0.0.1:1
}

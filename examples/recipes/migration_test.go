package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	rueidisclient "github.com/redis/rueidis"
	valkeyclient "github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/providers/valkey"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// One service locks through go-redis and another one through rueidis already. They exclude each
// other.
func Example_migrationToAnotherClient() {
	b := connect()
	defer b.close()
	client := locker.Must(rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress:  []string{b.server.Addr()},
		DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true, // for the embedded server only
	}))
	defer client.Close()
	drv := locker.Must(rueidis.New(client))
	defer drv.Close()
	before := locker.Must(single.New(b.driver, single.Config{}))
	after := locker.Must(single.New(drv, single.Config{}))

	ctx, req := context.Background(), locker.Request{Name: "invoice:42", Note: "over go-redis"}
	lock, err := before.Acquire(ctx, req)
	if err != nil {
		panic(err)
	}
	_, err = after.Acquire(ctx, locker.Request{Name: "invoice:42"})
	if held, ok := errors.AsType[*locker.ContentionError](err); ok {
		fmt.Println("rueidis is refused, held by:", held.Note)
	}
	fmt.Println("go-redis releases:", lock.Release(ctx))
	lock, err = after.Acquire(ctx, req)
	fmt.Println("rueidis acquires:", err)
	fmt.Println("rueidis releases:", lock.Release(ctx))
	// Output:
	// rueidis is refused, held by: over go-redis
	// go-redis releases: <nil>
	// rueidis acquires: <nil>
	// rueidis releases: <nil>
}

// One instance has gone over from rueidis to valkey-go, another one has not. They exclude each
// other, and the fencing tokens go on.
func Example_migrationToValkey() {
	b := connect()
	defer b.close()
	rueidisClient := locker.Must(rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress:  []string{b.server.Addr()},
		DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true, // for the embedded server only
	}))
	defer rueidisClient.Close()
	valkeyClient := locker.Must(valkeyclient.NewClient(valkeyclient.ClientOption{
		InitAddress:  []string{b.server.Addr()},
		DisableCache: true, ForceSingleClient: true, AlwaysRESP2: true, // for the embedded server only
	}))
	defer valkeyClient.Close()
	old, migrated := locker.Must(rueidis.New(rueidisClient)), locker.Must(valkey.New(valkeyClient))
	defer old.Close()
	defer migrated.Close()

	ctx, req := context.Background(), locker.Request{Name: "invoice:42", Fenced: true}
	before := locker.Must(locker.Must(single.New(old, single.Config{})).Acquire(ctx, req))
	l := locker.Must(single.New(migrated, single.Config{}))
	_, err := l.Acquire(ctx, req)
	fmt.Println("valkey-go is refused:", errors.Is(err, locker.ErrNotAcquired))
	fmt.Println("rueidis releases:", before.Release(ctx))
	after := locker.Must(l.Acquire(ctx, req))
	fmt.Println("valkey-go has a higher token:", after.Fence() > before.Fence())
	fmt.Println("valkey-go releases:", after.Release(ctx))
	// Output:
	// valkey-go is refused: true
	// rueidis releases: <nil>
	// valkey-go has a higher token: true
	// valkey-go releases: <nil>
}

// Old instances still lock with SET key value NX PX, as many libraries do. With the same key as the
// name, old and new exclude each other.
func Example_migrationFromAnotherLibrary() {
	b := connect()
	defer b.close()
	ctx, key := context.Background(), "lock:invoice:42"
	l := locker.Must(single.New(b.driver, single.Config{Prefix: "lock:"}))

	taken := b.client.SetNX(ctx, key, "a value of the other library", time.Minute).Val()
	fmt.Println("the old one acquires:", taken)
	_, err := l.Acquire(ctx, locker.Request{Name: "invoice:42"})
	fmt.Println("the new one is refused:", errors.Is(err, locker.ErrNotAcquired))
	b.client.Del(ctx, key)

	lock, err := l.Acquire(ctx, locker.Request{Name: "invoice:42"})
	fmt.Println("the new one acquires:", err)
	fmt.Println("the old one is refused:", !b.client.SetNX(ctx, key, "a value of the other library", time.Minute).Val())
	fmt.Println("the new one releases:", lock.Release(ctx))
	// Output:
	// the old one acquires: true
	// the new one is refused: true
	// the new one acquires: <nil>
	// the old one is refused: true
	// the new one releases: <nil>
}

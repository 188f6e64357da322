package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/rueidis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

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

// A quorum over rueidis starts while one server is down, and has the lock there too once the server
// is back.
func TestQuorumStartsWithAServerDown(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3, redistest.Options{})
	down := servers[2]
	if err := down.Stop(); err != nil {
		t.Fatal(err)
	}
	var nodes []locker.Locker
	for i, s := range servers {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true})
		if client == nil || (err != nil) != (i == 2) {
			t.Fatalf("NewClient for server %d: %v, %v", i, client, err)
		}
		t.Cleanup(client.Close)
		drv := locker.Must(rueidis.New(client))
		t.Cleanup(func() { _ = drv.Close() })
		nodes = append(nodes, locker.Must(single.New(drv, single.Config{})))
	}
	l := locker.Must(redlock.New(nodes, redlock.Config{}))
	const name, other = "invoice:42", "invoice:43"
	lock, err := l.Acquire(t.Context(), locker.Request{Name: name, TTL: time.Minute})
	if err != nil {
		t.Fatalf("Acquire with a server down: %v", err)
	}
	if err := down.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := func(name string) bool { return down.MustCommand(t, "EXISTS", name) == int64(1) }
	wait := func(what string, cond func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !cond(); <-time.After(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("still not: %s", what)
			}
		}
	}
	wait("a renewal brings the lock to the server that is back", func() bool {
		if err := lock.Renew(t.Context(), time.Minute); err != nil {
			t.Fatalf("Renew: %v", err)
		}
		return held(name)
	})
	second, err := l.Acquire(t.Context(), locker.Request{Name: other, TTL: time.Minute})
	if err != nil {
		t.Fatalf("Acquire with the server back: %v", err)
	}
	wait("an acquire takes in the server that is back", func() bool { return held(other) })
	for _, lock := range []*locker.Lock{lock, second} {
		if err := lock.Release(context.Background()); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
	wait("the releases reach it too", func() bool { return !held(name) && !held(other) })
}

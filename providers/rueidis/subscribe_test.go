package rueidis_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// Subscriptions take one connection of the client's pool, and return it fit for other use, even
// after its loss. The pool has no other.
func TestSubscriptionsGiveTheirConnectionBack(t *testing.T) {
	t.Parallel()
	t.Run("RESP2", func(t *testing.T) {
		t.Parallel()
		clients.Bubble(t, func(t *testing.T) {
			m, p := clients.Proxied(t)
			opts := single(m.Net.Dial, p.Addr())
			opts.BlockingPoolSize = 1
			testConnectionBack(t, newClient(t, opts), p.CutAll, func() int { return m.PubSubNumSub("c")["c"] })
			synctest.Wait()
		})
	})
	t.Run("RESP3", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, redistest.Options{})
		client := newClient(t, redis.ClientOption{InitAddress: []string{s.Addr()}, BlockingPoolSize: 1})
		testConnectionBack(t, client, func() { s.MustCommand(t, "CLIENT", "KILL", "TYPE", "pubsub") }, func() int {
			list, _ := s.MustCommand(t, "CLIENT", "LIST", "TYPE", "pubsub").(string)
			return strings.Count(list, "\n")
		})
	})
}

func testConnectionBack(t *testing.T, client redis.Client, cut func(), subscribers func() int) {
	drv := newDriver(t, client)
	sub, err := drv.Subscribe(t.Context(), "c")
	check.Must(t, err)
	<-sub.Wake() // the confirmation
	cut()
	<-sub.Wake() // the next
	check.Error(t, "Close", drv.Close())
	for subscribers() > 0 {
		<-time.After(time.Millisecond)
	}
	conn, release := client.Dedicate()
	defer release()
	if err := conn.Do(t.Context(), conn.B().Get().Key("k").Build()).Error(); err != nil && !redis.IsRedisNil(err) {
		t.Errorf("GET on a connection of the user's pool: %v", err)
	}
}

// A client whose login was refused reports the refusal, and that nothing was sent.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		m, p := clients.Proxied(t)
		m.RequireAuth("secret")
		opts := single(m.Net.Dial, p.Addr())
		opts.Password = "wrong"
		client, err := redis.NewClient(opts)
		if err == nil || client == nil {
			t.Fatalf("NewClient: %v, %v; it is known to return both a client and an error here", client, err)
		}
		t.Cleanup(client.Close)
		drv := newDriver(t, client)
		for i, send := range operations {
			if err := send(t.Context(), drv, "k"); driver.CodeOf(err) != "WRONGPASS" || !errors.Is(err, driver.ErrNotSent) {
				t.Errorf("operation %d: %v; want a ServerError WRONGPASS, and ErrNotSent", i, err)
			}
		}
	})
}

package adapter_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// shardedCluster is a cluster with masters "a" and "b". Each channel is at "a" unless moved.
type shardedCluster struct {
	plain   *server
	masters map[string]*server
	hub     *adapter.Hub

	mu    sync.Mutex
	known map[string]string // where the client knows a channel to be
	fails error             // of Master
	asked []time.Time       // how new Master was to know it
}

// newShardedCluster returns a cluster and a Hub on it. The client's knowledge is that of the
// cluster unless learn changes it.
func newShardedCluster(t *testing.T) *shardedCluster {
	c := &shardedCluster{plain: newServer(t), masters: map[string]*server{}, known: map[string]string{}}
	for _, name := range []string{"a", "b"} {
		c.masters[name] = newServer(t)
		c.masters[name].client = knowsOrder
	}
	c.hub = adapter.NewShardedHub(c.plain.open, adapter.Shards{
		Master: func(_ context.Context, channel string, fresh time.Time) (string, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.asked = append(c.asked, fresh)
			if name := c.known[channel]; name != "" {
				return name, c.fails
			}
			return "a", c.fails
		},
		Open: func(ctx context.Context, master, _ string) (adapter.Feed, error) { return c.masters[master].open(ctx) },
	})
	t.Cleanup(func() {
		closeHub(t, c.hub)
		for _, s := range append([]*server{c.plain}, c.masters["a"], c.masters["b"]) {
			for _, f := range s.feeds {
				if !f.isClosed() {
					t.Error("Close leaves a connection open")
				}
			}
		}
	})
	return c
}

// learn lets the client know that a channel is at "b".
func (c *shardedCluster) learn(channel string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[channel] = "b"
}

// fail makes Master return err from now on; nil: it knows the masters.
func (c *shardedCluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fails, c.asked = err, nil
}

// connections is how many are open.
func (s *server) connections() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.feeds {
		if !f.isClosed() {
			n++
		}
	}
	return n
}

// want demands that channel is subscribed at a master, "" for none, and that messages there wake
// sub.
func (c *shardedCluster) want(t *testing.T, sub driver.Subscription, channel, master string) {
	t.Helper()
	synctest.Wait()
	delivery := driver.DeliverySharded
	if master == "" {
		delivery = driver.DeliveryPlain
	}
	check.Equal(t, "Delivery", c.hub.Delivery(channel), delivery)
	wakeUps(sub)
	for name, s := range c.masters {
		if s.connections() == 0 {
			continue
		}
		s.newest().publish(channel)
		synctest.Wait()
		if n := wakeUps(sub); (n == 1) != (name == master) {
			t.Errorf("a message at master %s woke %d times; subscribed at %q", name, n, master)
		}
	}
	c.plain.newest().publish(channel)
	synctest.Wait()
	if n := wakeUps(sub); n != 1 {
		t.Errorf("a plain message woke %d times", n)
	}
}

func closeSub(t *testing.T, sub driver.Subscription) {
	t.Helper()
	check.OK(t, sub.Close())
}

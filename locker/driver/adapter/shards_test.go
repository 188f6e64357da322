package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

func TestShardedSubscription(t *testing.T) {
	t.Parallel()
	moved := serverError("MOVED 42 10.0.0.1:7000")
	check.EachInFakeTime(t, map[string]func(t *testing.T, c *shardedCluster){
		"messages of both kinds wake": func(t *testing.T, c *shardedCluster) {
			if c.hub.Delivery("x") != driver.DeliveryPlain {
				t.Error("before the first answer the servers need not know SSUBSCRIBE")
			}
			c.learn("y")
			x, y := subscribe(t, c.hub, "x"), subscribe(t, c.hub, "y")
			c.want(t, x, "x", "a")
			c.want(t, y, "y", "b")
			if c.hub.Delivery("z") != driver.DeliverySharded {
				t.Error("the servers know SSUBSCRIBE")
			}
			closeSub(t, x)
			wantSent(t, c.masters["a"].newest(), "+x", "-x")
		},
		"listeners share a subscription": func(t *testing.T, c *shardedCluster) {
			first, second := subscribe(t, c.hub, "x"), subscribe(t, c.hub, "x")
			closeSub(t, first)
			c.want(t, second, "x", "a")
			wantSent(t, c.masters["a"].newest(), "+x")
		},
		"a slot that moves": func(t *testing.T, c *shardedCluster) {
			x, y := subscribe(t, c.hub, "x"), subscribe(t, c.hub, "y")
			check.Advance(2 * time.Second)
			c.masters["a"].set(func() { c.masters["a"].forbid["x"] = moved })
			begin := time.Now()
			c.masters["a"].newest().events <- event{Event: adapter.Event{Kind: "unsubscribe", Channel: "x"}}
			c.want(t, x, "x", "")
			check.Advance(100 * time.Millisecond) // the client's slots are old: it gets MOVED
			c.want(t, x, "x", "")
			c.learn("x")
			c.mu.Lock()
			if fresh := c.asked[len(c.asked)-1]; fresh.Before(begin) {
				t.Error("Master may answer with what it knew before")
			}
			c.mu.Unlock()
			wakeUps(x)
			check.Advance(time.Second)
			if wakeUps(x) != 1 {
				t.Error("the new subscription did not wake")
			}
			c.want(t, x, "x", "b")
			c.want(t, y, "y", "a")
			check.Equal(t, "connections to master a", len(c.masters["a"].feeds), 1)
		},
		"a master that became a replica": func(t *testing.T, c *shardedCluster) {
			x := subscribe(t, c.hub, "x")
			c.learn("x")
			check.Advance(time.Second)
			c.want(t, x, "x", "b")
			wantSent(t, c.masters["a"].newest(), "+x", "-x")
		},
		"a master that dies": func(t *testing.T, c *shardedCluster) {
			x, y := subscribe(t, c.hub, "x"), subscribe(t, c.hub, "y")
			c.masters["a"].set(func() { c.masters["a"].refuse = errors.New("connection refused") })
			c.masters["a"].newest().hangUp()
			check.Advance(10 * time.Second)
			c.want(t, x, "x", "")
			if n := len(c.masters["a"].dials()); n < 10 || n > 40 {
				t.Errorf("dialed %d times in 10 s", n)
			}
			c.learn("x")
			c.learn("y")
			check.Advance(time.Second)
			c.want(t, x, "x", "b")
			c.want(t, y, "y", "b")
		},
		"channels that are closed where their slots were": func(t *testing.T, c *shardedCluster) {
			x := subscribe(t, c.hub, "x")
			c.masters["a"].set(func() { c.masters["a"].forbidUn = moved })
			for i := range 1100 {
				closeSub(t, subscribe(t, c.hub, fmt.Sprint("gone", i)))
			}
			c.want(t, x, "x", "a")
			check.Equal(t, "connections to master a", len(c.masters["a"].feeds), 1)
		},
		"a cluster that does not answer": func(t *testing.T, c *shardedCluster) {
			const channels = 100
			for i := range channels {
				subscribe(t, c.hub, fmt.Sprint(i))
			}
			check.Advance(10 * time.Second)
			c.fail(errors.New("no node answers"))
			c.masters["a"].newest().hangUp()
			check.Advance(10 * time.Second)
			c.mu.Lock()
			if n := len(c.asked); n > 2*channels {
				t.Errorf("asked %d times in 10 s for the masters of %d channels", n, channels)
			}
			c.mu.Unlock()
			c.fail(nil)
			check.Advance(2 * time.Second)
			for i := range channels {
				if c.hub.Delivery(fmt.Sprint(i)) != driver.DeliverySharded {
					t.Errorf("channel %d is not subscribed again", i)
				}
			}
		},
		"a closed channel leaves the connection, for a while": func(t *testing.T, c *shardedCluster) {
			x := subscribe(t, c.hub, "x")
			closeSub(t, x)
			check.Advance(20 * time.Second)
			if c.masters["a"].connections() != 1 {
				t.Error("the connection is closed already")
			}
			check.Advance(20 * time.Second)
			if c.masters["a"].connections() != 0 {
				t.Error("the connection is still open")
			}
			c.want(t, subscribe(t, c.hub, "x"), "x", "a")
		},
	}, func(t *testing.T, run func(t *testing.T, c *shardedCluster)) {
		run(t, newShardedCluster(t))
	})
}

// If SSUBSCRIBE is refused, PUBLISH still wakes.
func TestShardedSubscriptionIsRefused(t *testing.T) {
	t.Parallel()
	type test struct {
		err error
		all bool // it concerns all channels
	}
	check.EachInFakeTime(t, map[string]test{
		"an old server":        {serverError("ERR unknown command 'SSUBSCRIBE'"), true},
		"the ACL, the command": {serverError("NOPERM User u has no permissions to run the 'ssubscribe' command"), true},
		"the ACL, the channel": {serverError("NOPERM No permissions to access a channel"), false},
	}, func(t *testing.T, tt test) {
		c := newShardedCluster(t)
		a := c.masters["a"]
		a.set(func() { a.forbid["x"] = tt.err })
		begin := time.Now()
		x := subscribe(t, c.hub, "x")
		if d := time.Since(begin); d > 0 {
			t.Errorf("Subscribe took %v", d)
		}
		c.want(t, x, "x", "")
		y := subscribe(t, c.hub, "y")
		if tt.all {
			c.want(t, y, "y", "")
		} else {
			c.want(t, y, "y", "a")
		}
		check.Advance(50 * time.Second)
		if n := slices.Index(a.newest().sent(), "+x"); n != 0 || slices.Contains(a.newest().sent()[1:], "+x") {
			t.Errorf("the master got %q within a minute", a.newest().sent())
		}
		a.set(func() { delete(a.forbid, "x") })
		check.Advance(15 * time.Second)
		c.want(t, x, "x", "a")
		c.want(t, y, "y", "a")
	})
}

// A master that does not answer delays Subscribe for a second.
func TestShardedSubscriptionIsLate(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		c := newShardedCluster(t)
		c.masters["a"].set(func() { c.masters["a"].silent = true })
		begin := time.Now()
		x := subscribe(t, c.hub, "x")
		check.Took(t, "Subscribe", begin, time.Second)
		if c.hub.Delivery("x") != driver.DeliveryPlain {
			t.Error("SSUBSCRIBE is not answered yet")
		}
		c.masters["a"].newest().confirm("x")
		c.want(t, x, "x", "a")

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if sub, err := c.hub.Subscribe(ctx, "y"); sub != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Subscribe: %v, %v", sub, err)
		}
		check.Advance(time.Second)
		if sent := c.masters["a"].newest().sent(); !slices.Contains(sent, "-y") {
			t.Errorf("a subscription that was given up is left: %q", sent)
		}
	})
}

// A client that cannot tell the masters apart, or does not know them now.
func TestShardedSubscriptionWithoutMaster(t *testing.T) {
	t.Parallel()
	type test struct {
		err   error
		takes time.Duration
	}
	check.EachInFakeTime(t, map[string]test{
		"never": {errors.ErrUnsupported, 0},
		"now":   {errors.New("no node answers"), time.Second},
	}, func(t *testing.T, tt test) {
		c := newShardedCluster(t)
		c.fails = tt.err
		begin := time.Now()
		x := subscribe(t, c.hub, "x")
		check.Took(t, "Subscribe", begin, tt.takes)
		c.want(t, x, "x", "")
		c.fail(nil)
		check.Advance(time.Minute)
		c.want(t, x, "x", "a")
	})
}

// Close leaves nothing, whatever is going on; goleak and the bubble check it.
func TestShardedHubClose(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		c := newShardedCluster(t)
		x := subscribe(t, c.hub, "x")
		c.masters["b"].set(func() { c.masters["b"].silent = true })
		c.learn("y")
		answer := ask(t.Context(), c.hub, "y")
		check.OK(t, c.hub.Close())
		if got := <-answer; !errors.Is(got.err, driver.ErrClosed) {
			t.Errorf("a Subscribe under way: %v, want ErrClosed", got.err)
		}
		if _, err := c.hub.Subscribe(t.Context(), "z"); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("a later Subscribe: %v, want ErrClosed", err)
		}
		_ = x.Close()
	})
}

// shardedCluster is a cluster with masters "a" and "b". Each channel is at "a" unless moved.
type shardedCluster struct {
	plain   *server
	masters map[string]*server
	hub     *adapter.Hub

	mu    sync.Mutex
	known map[string]string // the client's knowledge, by channel
	fails error             // of Master
	asked []time.Time       // argument fresh of each Master call
}

// newShardedCluster returns a cluster and a Hub on it. The client knows its state unless learn
// changes it.
func newShardedCluster(t *testing.T) *shardedCluster {
	c := &shardedCluster{plain: newServer(t), masters: map[string]*server{}, known: map[string]string{}}
	for _, name := range []string{"a", "b"} {
		c.masters[name] = newServer(t)
		c.masters[name].client = knowsOrder
	}
	c.hub = adapter.NewHub(c.plain.open, &adapter.Shards{
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

// learn tells the client that channel is at "b".
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

// connections returns the number of open ones.
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

// want demands that channel is subscribed at master only ("": none), and messages there wake sub.
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

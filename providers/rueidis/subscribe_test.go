package rueidis_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	redis "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

func TestSubscribe(t *testing.T) {
	t.Parallel()
	type target struct {
		opts    redis.ClientOption
		servers []*redistest.Server // that may have the subscription
	}
	targets := map[string]func(t *testing.T) target{
		"single": func(t *testing.T) target {
			s := redistest.Start(t, redistest.Options{})
			return target{redis.ClientOption{InitAddress: []string{s.Addr()}}, []*redistest.Server{s}}
		},
		"cluster": func(t *testing.T) target {
			c := redistest.StartCluster(t, 3, redistest.Options{})
			return target{redis.ClientOption{InitAddress: c.Addrs()}, c.Nodes()}
		},
		"Sentinel": func(t *testing.T) target {
			s := redistest.StartSentinel(t, redistest.Options{})
			opts := redis.ClientOption{InitAddress: s.SentinelAddrs(), Sentinel: redis.SentinelOption{MasterSet: s.MasterName()}}
			master, err := s.Master(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return target{opts, []*redistest.Server{master}}
		},
		"TLS with a password": func(t *testing.T) target {
			s := redistest.Start(t, redistest.Options{TLS: redistest.MutualTLS, Password: "secret"})
			opts := redis.ClientOption{InitAddress: []string{s.Addr()}, TLSConfig: s.TLSConfig(true), Password: "secret"}
			return target{opts, []*redistest.Server{s}}
		},
	}
	protocols := map[string]func(*redis.ClientOption){
		"RESP3":                 func(*redis.ClientOption) {},
		"RESP2":                 func(o *redis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true },
		"DisableAutoPipelining": func(o *redis.ClientOption) { o.DisableAutoPipelining = true },
	}
	for name, start := range targets {
		for protocol, set := range protocols {
			t.Run(name+", "+protocol, func(t *testing.T) {
				t.Parallel()
				to := start(t)
				set(&to.opts)
				to.opts.BlockingPoolSize = 1 // what is not given back is missing soon
				if len(to.servers) > 1 {
					to.opts.BlockingPoolSize = 2 // a master may have a connection for SUBSCRIBE and one for SSUBSCRIBE
				}
				to.opts.ClientName = clientName
				testSubscribe(t, newClient(t, to.opts), to.servers, to.opts.BlockingPoolSize)
			})
		}
	}
}

func testSubscribe(t *testing.T, client redis.Client, servers []*redistest.Server, poolSize int) {
	drv := newDriver(t, client)
	subs := map[string]driver.Subscription{}
	for _, channel := range []string{"a", "b", "c"} {
		subs[channel] = subscribe(t, drv, channel)
	}
	most := 1
	if len(servers) > 1 { // a cluster: one more at each node, for SSUBSCRIBE
		most += len(servers)
	}
	if n := subscribers(t, servers); n < 1 || n > most {
		t.Errorf("%d connections have subscriptions, want %d at most", n, most)
	}
	alone := false
	for range 5 { // the confirmation of a cluster's second connection may come late, and wakes too
		publish(t, client, "b")
		wait(t, "the wake-up of b", subs["b"].Wake())
		if alone = len(subs["a"].Wake()) == 0 && len(subs["c"].Wake()) == 0; alone {
			break
		}
		drain(subs["a"].Wake())
		drain(subs["c"].Wake())
	}
	if !alone {
		t.Error("others were woken too")
	}

	if err := subs["c"].Close(); err != nil {
		t.Errorf("Close of one subscription: %v", err)
	}
	for _, s := range servers {
		s.MustCommand(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	wait(t, "the wake-up of a after the connection was lost", subs["a"].Wake())
	wait(t, "the wake-up of b after the connection was lost", subs["b"].Wake())
	publish(t, client, "a")
	wait(t, "the wake-up of a", subs["a"].Wake())

	if err := drv.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	eventually(t, "no connection has subscriptions", func() bool { return subscribers(t, servers) == 0 })
	within(t, "taking all connections of the pool", func() {
		for range poolSize {
			conn, release := client.Dedicate()
			defer release()
			if err := conn.Do(t.Context(), conn.B().Get().Key("k").Build()).Error(); err != nil && !redis.IsRedisNil(err) {
				t.Errorf("GET on a connection of the user's pool: %v", err)
			}
		}
	})
}

// drain discards a wake-up.
func drain(wake <-chan struct{}) {
	select {
	case <-wake:
	default:
	}
}

// subscribe returns a subscription whose first wake-up, for the confirmation, is over.
func subscribe(t *testing.T, drv driver.Driver, channel string) driver.Subscription {
	t.Helper()
	sub, err := drv.Subscribe(t.Context(), channel)
	if err != nil {
		t.Fatalf("Subscribe to %s: %v", channel, err)
	}
	wait(t, "the wake-up of "+channel+" by its confirmation", sub.Wake())
	return sub
}

func publish(t *testing.T, client redis.Client, channel string) {
	t.Helper()
	if err := client.Do(t.Context(), client.B().Publish().Channel(channel).Message("").Build()).Error(); err != nil {
		t.Fatalf("PUBLISH %s: %v", channel, err)
	}
}

// clientName is the name of our connections; Sentinels have subscriptions too.
const clientName = "ours"

// subscribers counts our connections with subscriptions.
func subscribers(t *testing.T, servers []*redistest.Server) int {
	t.Helper()
	n := 0
	for _, s := range servers {
		list, ok := s.MustCommand(t, "CLIENT", "LIST", "TYPE", "pubsub").(string)
		if !ok {
			t.Fatal("CLIENT LIST answered no string")
		}
		n += strings.Count(list, "name="+clientName)
	}
	return n
}

func TestSubscribeNotAllowed(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	s.MustCommand(t, "ACL", "SETUSER", "limited", "on", ">secret", "~*", "+@all", "resetchannels", "&allowed.*")
	for name, resp2 := range map[string]bool{"RESP2": true, "RESP3": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			allowed := "allowed." + name // of its own: a message to it wakes
			client := newClient(t, redis.ClientOption{
				InitAddress: []string{s.Addr()}, Username: "limited", Password: "secret",
				AlwaysRESP2: resp2, DisableCache: resp2, BlockingPoolSize: 1,
			})
			drv := newDriver(t, client)
			sub := subscribe(t, drv, allowed)
			for range 2 {
				if _, err := drv.Subscribe(t.Context(), "forbidden"); driver.CodeOf(err) != "NOPERM" {
					t.Errorf("Subscribe: %v; want NOPERM", err)
				}
			}
			select {
			case <-sub.Wake():
				t.Error("the other was woken: the connection was replaced")
			default:
			}
			publish(t, client, allowed)
			wait(t, "a wake-up", sub.Wake())
		})
	}
}

func TestSubscribeWithoutServer(t *testing.T) {
	t.Parallel()
	p := mini(t)
	client := newClient(t, single(p.Addr()))
	drv := newDriver(t, client)
	sub := subscribe(t, drv, "a")

	p.Refuse()
	p.CutAll()
	if _, err := drv.Subscribe(t.Context(), "b"); err == nil || !driver.Transient(err) {
		t.Errorf("Subscribe without a server: %v; want a transient error", err)
	}
	if err := p.Accept(); err != nil {
		t.Fatal(err)
	}
	wait(t, "the wake-up of a after the server has come back", sub.Wake())
	_ = subscribe(t, drv, "b").Close()
}

func TestSubscribeAtSilentServer(t *testing.T) {
	t.Parallel()
	for name, subscribed := range map[string]bool{"dialing": false, "subscribed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := mini(t)
			opts := single(p.Addr())
			opts.ConnWriteTimeout, opts.Dialer.Timeout = forever, forever
			drv := dial(t, opts)
			t.Cleanup(p.CutAll)
			if subscribed {
				subscribe(t, drv, "a")
			}
			p.Freeze()
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			within(t, "Subscribe", func() {
				if _, err := drv.Subscribe(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Subscribe: %v; want DeadlineExceeded", err)
				}
			})
			within(t, "Close", func() {
				if err := drv.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// What is unsubscribed is not heard of again, also if it was subscribed and left before the server
// could answer.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	p := mini(t)
	drv := dial(t, single(p.Addr()))
	subscribe(t, drv, "a")
	for range 3 {
		_ = subscribe(t, drv, "b").Close()
	}
	eventually(t, "UNSUBSCRIBE b", func() bool { return p.Count(faultproxy.Command("UNSUBSCRIBE", "b")) == 3 })
	subscribe(t, drv, "b")
	if n := p.Count(faultproxy.Command("SUBSCRIBE", "b")); n != 4 {
		t.Errorf("b was subscribed to %d times, want 4", n)
	}
}

func TestWrongPassword(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Password: "secret"})
	client, err := redis.NewClient(redis.ClientOption{InitAddress: []string{s.Addr()}, Password: "wrong", ForceSingleClient: true})
	if err == nil || client == nil {
		t.Fatalf("NewClient: %v, %v; it is known to return both a client and an error here", client, err)
	}
	t.Cleanup(client.Close)
	drv := newDriver(t, client)
	for name, err := range sendAll(t.Context(), drv) {
		if driver.CodeOf(err) != "WRONGPASS" || !errors.Is(err, driver.ErrNotSent) {
			t.Errorf("%s: %v; want a ServerError WRONGPASS, and ErrNotSent", name, err)
		}
	}
}

func TestUserAndTLS(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{TLS: redistest.ServerTLS, Password: "secret"})
	s.MustCommand(t, "ACL", "SETUSER", "alice", "on", ">wonder", "~*", "&*", "+@all", "-set")
	drv := dial(t, redis.ClientOption{InitAddress: []string{s.Addr()}, Username: "alice", Password: "wonder", TLSConfig: s.TLSConfig(false)})
	if _, err := drv.SetNX(t.Context(), "k", "v", time.Minute); driver.CodeOf(err) != "NOPERM" {
		t.Errorf("SetNX: %v; want NOPERM", err)
	}
	reply, err := drv.Eval(t.Context(), increment, []string{"k"}, nil)
	wantInt(t, "Eval", reply, err, 1)
}

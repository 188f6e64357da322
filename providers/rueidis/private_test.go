package rueidis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/gocommand"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker/driver"
)

type privateKind struct {
	set    func(o *rueidis.ClientOption)
	noStop bool
}

// privateKinds are all types of client made by NewClient; some lack the field stop.
var privateKinds = map[string]privateKind{
	"single": {set: func(o *rueidis.ClientOption) { o.ForceSingleClient = true }},
	"with replicas": {noStop: true, set: func(o *rueidis.ClientOption) {
		o.Standalone.ReplicaAddress = o.InitAddress
		o.SendToReplicas = func(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }
	}},
	"cluster":  {set: func(*rueidis.ClientOption) {}},
	"Sentinel": {set: func(o *rueidis.ClientOption) { o.Sentinel.MasterSet = "master" }},
}

// open makes a client of a server in memory, also usable as a cluster and as a Sentinel. It is for
// bubbles.
func open(t *testing.T, set ...func(*rueidis.ClientOption)) (rueidis.Client, *memredis.Server) {
	t.Helper()
	t.Cleanup(func() { <-time.After(time.Minute) }) // fake time, for what a closed client still does
	m := memredis.Start(t, memnet.New())
	host, port, _ := net.SplitHostPort(m.Addr())
	for command, reply := range map[string]func(c *server.Peer, args []string){
		"ROLE": func(c *server.Peer, _ []string) { c.WriteStrings([]string{"master", "0"}) },
		"SENTINEL": func(c *server.Peer, args []string) {
			if strings.EqualFold(args[0], "GET-MASTER-ADDR-BY-NAME") {
				c.WriteStrings([]string{host, port})
			} else {
				c.WriteLen(0) // no other Sentinels
			}
		},
	} {
		check.Must(t, m.Server().Register(command, func(c *server.Peer, _ string, args []string) { reply(c, args) }))
	}
	opts := rueidis.ClientOption{
		InitAddress: []string{m.Addr()}, DisableCache: true, AlwaysRESP2: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return m.Net.Dial(ctx, "tcp", m.Addr())
		},
	}
	for _, set := range set {
		set(&opts)
	}
	client, err := rueidis.NewClient(opts)
	check.Must(t, err)
	t.Cleanup(client.Close)
	return client, m
}

// changed fails the test because the client's fields differ from private.go.
func changed(t *testing.T, what, missing string, client rueidis.Client) {
	t.Helper()
	version := strings.TrimSpace(string(gocommand.Run(t, ".", "list", "-m", "-f", "{{.Version}}", reflect.TypeFor[rueidis.ClientOption]().PkgPath())))
	t.Errorf("rueidis %s: %s of type %v %s: read the client anew and change private.go", version, what, reflect.TypeOf(client), missing)
}

func TestClosedFlag(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, privateKinds, func(t *testing.T, kind privateKind) {
		client, _ := open(t, kind.set)
		flag := closedFlag(client)
		switch {
		case kind.noStop && flag != nil:
			changed(t, "field stop", "is new", client)
		case kind.noStop:
		case flag == nil:
			changed(t, "field stop (uint32)", "is gone", client)
		case isClosed(flag):
			changed(t, "field stop", "is not 0 while the client is open", client)
		default:
			client.Close()
			if !isClosed(flag) {
				changed(t, "field stop", "is not set by Close", client)
			}
		}
	})
}

func TestConnections(t *testing.T) { //nolint:tparallel // InFakeTime makes its subtests parallel
	t.Parallel()
	for name, kind := range privateKinds {
		t.Run(name, func(t *testing.T) {
			check.InFakeTime(t, func(t *testing.T) {
				client, _ := open(t, kind.set, func(o *rueidis.ClientOption) { o.PipelineMultiplex = 1 })
				stand := connections(client)
				for range 50 { // over each of the connections
					check.OK(t, client.Do(t.Context(), client.B().Arbitrary("SET").Keys("k").Args("v").Build()).Error())
				}
				if known := name == "single" || name == "Sentinel"; stand() != known {
					changed(t, "field conn or mConn, or its mux", "does not show that connections stand", client)
				}
			})
		})
	}
}

func TestHasLifetime(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, privateKinds, func(t *testing.T, kind privateKind) {
		without, _ := open(t, kind.set)
		if hasLifetime(without) {
			changed(t, "field hasLftm or opt", "shows a ConnLifetime that is not set", without)
		}
		with, _ := open(t, kind.set, func(o *rueidis.ClientOption) { o.ConnLifetime = time.Hour })
		if !hasLifetime(with) {
			changed(t, "field hasLftm (bool) or opt (*ClientOption)", "is gone or does not show ConnLifetime", with)
		}
	})
}

var errRefused = errors.New("refused")

// refusing is a context that has ended only for a caller of Err.
type refusing struct{ context.Context }

func (refusing) Err() error { return errRefused }

func TestAsksContext(t *testing.T) {
	t.Parallel()
	check.EachInFakeTime(t, privateKinds, func(t *testing.T, kind privateKind) {
		client, m := open(t, kind.set)
		if !checksContext(client) {
			changed(t, "the package", "is another one", client)
		}
		for way, blocking := range map[string]bool{"shared": false, "blocking": true} {
			set := func() rueidis.Completed {
				b := client.B().Arbitrary("SET").Keys("k").Args("v")
				if blocking {
					return b.Blocking()
				}
				return b.Build().ToPipe()
			}
			ctx := refusing{t.Context()}
			results := append(client.DoMulti(ctx, set(), set()), client.Do(ctx, set()))
			for _, r := range results {
				if err := r.NonRedisError(); !errors.Is(err, errRefused) || m.Exists("k") {
					changed(t, way+" command", "is sent without a call of Err of its context", client)
				}
			}
		}
	})
}

// wrapped is a client of another type with fields of the same names.
type wrapped struct {
	rueidis.Client
	stop    uint32
	hasLftm bool
}

// Nothing is read from a client of another type. Once it is closed, one command has an unknown
// outcome, and later ones are not sent.
func TestNothingPrivateIsKnown(t *testing.T) { //nolint:tparallel // InFakeTime makes its subtests parallel
	t.Parallel()
	for name, kind := range privateKinds {
		t.Run(name, func(t *testing.T) {
			check.InFakeTime(t, func(t *testing.T) {
				client, _ := open(t, kind.set)
				w := &wrapped{client, 1, true}
				if closedFlag(w) != nil || hasLifetime(w) || checksContext(w) {
					t.Errorf("fields of another type are read: %v, %t, %t", closedFlag(w), hasLifetime(w), checksContext(w))
				}
				drv, err := New(w)
				check.Must(t, err)
				t.Cleanup(func() { _ = drv.Close() })
				setNX := func() error { return check.ErrOf(drv.SetNX(t.Context(), "k", "v", time.Minute)) }
				check.OK(t, setNX())
				client.Close()
				check.Eventually(t, "its connections are closed", func() bool { err = setNX(); return err != nil })
				for later := range 3 {
					check.Is(t, err, rueidis.ErrClosing)
					check.Equal(t, "not sent", errors.Is(err, driver.ErrNotSent), later > 0 && name != "cluster")
					check.Equal(t, "transient", driver.Transient(err), later == 0 || name == "cluster" || name == "Sentinel")
					err = setNX()
				}
			})
		})
	}
}

// Once a client has sent without a call of Err, none of its commands counts as not sent.
func TestClientThatDoesNotAsk(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		client, _ := open(t, privateKinds["single"].set)
		drv, err := New(&silent{client})
		check.Must(t, err)
		t.Cleanup(func() { _ = drv.Close() })
		d := drv.(*rueidisDriver)
		d.asks.Store(true)
		_, err = drv.SetNX(t.Context(), "k", "v", time.Minute)
		check.OK(t, err)
		check.Equal(t, "asks", d.asks.Load(), false)
	})
}

// silent hides the context of commands from a client.
type silent struct{ rueidis.Client }

func (s *silent) Do(_ context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return s.Client.Do(context.Background(), cmd)
}

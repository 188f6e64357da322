// Package respdriver is a complete adapter without a client library; package resp takes the place
// of one: it encodes commands and decodes replies. respdriver is the model of
// docs/writing-a-provider.md. The tests of the conformance suite run on it, to test the suite and
// not a client.
package respdriver

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Config has the addresses of the servers, and the login.
type Config struct {
	Addrs              []string // "host:port"
	Cluster            bool     // Addrs are nodes of a cluster
	MasterName         string   // if not empty, Addrs are Sentinels
	Username, Password string
	TLS                *tls.Config
	Dial               func(ctx context.Context, network, addr string) (net.Conn, error) // nil: TCP
}

// Driver implements driver.Driver.
type Driver struct {
	adapter.Driver
	cfg      Config
	topology *adapter.Topology // nil: not a cluster

	mu    sync.Mutex
	idle  map[string][]*resp.Conn // by address
	next  int                     // index in cfg.Addrs of the node for commands without a key
	stale time.Time               // earlier knowledge of the topology is not relied on
}

var _ driver.Driver = (*Driver)(nil)

// New returns a Driver. It connects when it is used.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg, idle: map[string][]*resp.Conn{}}
	d.ClientInfo = driver.Info{Client: "resp", Address: strings.Join(cfg.Addrs, ",")}
	c := adapter.Client{Connections: 64, Waits: true, Send: d.send}
	if cfg.Cluster {
		d.topology = adapter.NewTopology(func() adapter.Client { return c }, d.askSlots, d.Background)
		d.Pipelines = d.topology
		d.Hub = adapter.NewHub(d.open, &adapter.Shards{Master: d.masterOf, Open: d.openShard})
	} else {
		d.Pipelines, d.Hub, d.OneServer = adapter.NewPipeline(c), adapter.NewHub(d.open, nil), true
	}
	return d
}

// send implements adapter.Client.
func (d *Driver) send(ctx context.Context, commands []*adapter.Command) {
	d.sendTo(ctx, d.addrOf(ctx, commands[0].Key()), false, commands)
	for _, c := range commands {
		for to, asking := d.redirect(c.Err()); to != ""; to, asking = d.redirect(c.Err()) {
			d.sendTo(ctx, to, asking, []*adapter.Command{c})
		}
	}
}

// sendTo sends commands to the server at addr. The connection is closed when ctx ends. asking makes
// a node of a cluster serve a slot it is about to get.
func (d *Driver) sendTo(ctx context.Context, addr string, asking bool, commands []*adapter.Command) {
	conn, err := d.conn(ctx, addr)
	if err != nil {
		d.distrust(addr)
		for _, c := range commands {
			c.Answer(nil, driver.NotSent(err))
		}
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	if asking {
		_, err = do(conn, "ASKING")
	}
	if err == nil {
		err = exchange(conn, commands)
	} else {
		commands[0].Answer(nil, driver.NotSent(err))
	}
	if stop() && err == nil {
		d.putBack(addr, conn)
		return
	}
	_ = conn.Close()
	d.distrust(addr)
}

// exchange writes commands, and reads as many replies. It returns an error if the connection is
// broken. Then the outcome of commands without a reply is unknown.
func exchange(conn *resp.Conn, commands []*adapter.Command) (broken error) {
	var begun []*adapter.Command
	for _, c := range commands {
		if !c.Begin() {
			continue // its caller has left
		}
		begun = append(begun, c)
		if broken == nil {
			broken = conn.Send(c.Any()...)
		}
		if broken == nil && c.HasWait() {
			broken = conn.Send("WAIT", c.Wait[0], c.Wait[1])
		}
	}
	receive := func() (reply any, err error) {
		if broken != nil {
			return nil, broken
		}
		if reply, err = receive(conn); err != nil && driver.CodeOf(err) == "" {
			broken = err
		}
		return reply, err
	}
	for _, c := range begun {
		c.Answer(receive())
		if c.HasWait() {
			c.AnswerWait(receive())
		}
	}
	return broken
}

// Package respdriver is a complete adapter without a client library; package resp, which encodes
// commands and decodes replies, takes the place of one. It is the model of
// docs/writing-a-provider.md. The tests of the conformance suite run on it, so that they test the
// suite and not a client. It is not optimized.
package respdriver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Config says where to connect.
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
	adapter.Base
	cfg     Config
	scripts adapter.ScriptCache
	hub     *adapter.Hub

	mu    sync.Mutex
	idle  map[string][]*resp.Conn // by address
	slots map[int]string          // addresses of nodes, from MOVED replies
	next  int                     // index in cfg.Addrs of the node to ask about unknown slots

	masters adapter.Slots // as of asked; masterOf's alone
	asked   time.Time
}

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Batcher = (*Driver)(nil)
)

// New returns a Driver. It connects when it is used.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg, idle: map[string][]*resp.Conn{}, slots: map[int]string{}}
	d.hub = adapter.NewHub(d.open)
	if cfg.Cluster {
		d.hub = adapter.NewShardedHub(d.open, adapter.Shards{Master: d.masterOf, Open: d.openShard})
	}
	return d
}

// SetNX implements driver.Driver.
func (d *Driver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	reply, err := d.do(ctx, []string{key}, "SET", key, value, "NX", "PX", ttl.Milliseconds())
	return reply == "OK", err
}

// Eval implements driver.Driver.
func (d *Driver) Eval(
	ctx context.Context, s *driver.Script, keys, args []string,
) (driver.Reply, error) {
	return d.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
		reply, err := d.do(ctx, keys, evalArgs(command, body, keys, args)...)
		if err != nil {
			return driver.Reply{}, err
		}
		return driver.NewReply(reply)
	})
}

// evalArgs returns EVAL or EVALSHA with its arguments.
func evalArgs(command, body string, keys, args []string) []any {
	words := []any{command, body, len(keys)}
	for _, list := range [][]string{keys, args} {
		for _, word := range list {
			words = append(words, word)
		}
	}
	return words
}

// EvalAcked implements driver.Driver.
func (d *Driver) EvalAcked(
	ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration,
) (driver.Reply, int, error) {
	send := func(command, body string, wait [2]string) (driver.Reply, int, error) {
		eval := evalArgs(command, body, keys, args)
		replies, err := d.doAll(ctx, keys, eval, []any{"WAIT", wait[0], wait[1]})
		if err != nil {
			return driver.Reply{}, 0, err
		}
		var waitErr error
		if text, refused := replies[1].(resp.Error); refused {
			waitErr = adapter.NewServerError(string(text), text)
		}
		return adapter.AckedReply(replies[0], nil, replies[1], waitErr)
	}
	return d.scripts.EvalAcked(ctx, s, replicas, timeout, send)
}

// EvalMany implements driver.Batcher, with a connection for each call.
func (d *Driver) EvalMany(ctx context.Context, calls []driver.Call) []driver.Result {
	results := make([]driver.Result, len(calls))
	var wg sync.WaitGroup
	for i, c := range calls {
		wg.Go(func() { results[i].Reply, results[i].Err = d.Eval(ctx, c.Script, c.Keys, c.Args) })
	}
	wg.Wait()
	return results
}

// Subscribe implements driver.Driver.
func (d *Driver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	return d.hub.Subscribe(ctx, channel)
}

// Delivery implements driver.Driver.
func (d *Driver) Delivery(channel string) driver.Delivery {
	if d.cfg.Cluster {
		return d.hub.Delivery(channel)
	}
	return driver.DeliveryCounted
}

// Info implements driver.Driver.
func (d *Driver) Info() driver.Info {
	return driver.Info{Client: "resp", Address: strings.Join(d.cfg.Addrs, ",")}
}

// Close implements driver.Driver.
func (d *Driver) Close() error {
	err := d.Shutdown(d.hub)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conns := range d.idle {
		for _, c := range conns {
			err = errors.Join(err, c.Close())
		}
	}
	clear(d.idle)
	return err
}

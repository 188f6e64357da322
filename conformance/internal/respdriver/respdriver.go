// Package respdriver is an adapter without a client library: the suite's own tests run it on this one, so that they prove
// the suite and not a client. It shows what the contract asks of an adapter, and cares nothing for speed.
package respdriver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// Config says where to connect.
type Config struct {
	Addrs              []string
	Cluster            bool
	MasterName         string // not empty: Addrs are Sentinels
	Username, Password string
	TLS                *tls.Config
}

// Driver is a driver.Driver, a driver.Batcher and a driver.Acknowledger.
type Driver struct {
	adapter.Base
	cfg Config
	hub *adapter.Hub

	scripts adapter.ScriptCache

	mu    sync.Mutex
	idle  map[string][]*resp.Conn // by address
	slots map[int]string          // addresses that MOVED told
	ask   int                     // which of the Config's is asked for the others
}

// New makes a Driver. It connects when it is used.
func New(cfg Config) *Driver {
	d := &Driver{cfg: cfg, idle: map[string][]*resp.Conn{}, slots: map[int]string{}}
	d.hub = adapter.NewHub(d.feed)
	return d
}

// SetNX implements driver.Driver.
func (d *Driver) SetNX(ctx context.Context, key, value string, ttl time.Duration) (bool, error) {
	reply, err := d.do(ctx, []string{key}, "SET", key, value, "NX", "PX", ttl.Milliseconds())
	return reply == "OK", err
}

// Eval implements driver.Driver.
func (d *Driver) Eval(ctx context.Context, s *driver.Script, keys, args []string) (driver.Reply, error) {
	return d.scripts.Eval(ctx, s, func(command, body string) (driver.Reply, error) {
		reply, err := d.do(ctx, keys, scriptWords(command, body, keys, args)...)
		if err != nil {
			return driver.Reply{}, err
		}
		return driver.NewReply(reply)
	})
}

// scriptWords are the words of EVAL and EVALSHA.
func scriptWords(command, body string, keys, args []string) []any {
	words := []any{command, body, len(keys)}
	for _, list := range [][]string{keys, args} {
		for _, word := range list {
			words = append(words, word)
		}
	}
	return words
}

// EvalAcked implements driver.Acknowledger.
func (d *Driver) EvalAcked(ctx context.Context, s *driver.Script, keys, args []string, replicas int, timeout time.Duration) (driver.Reply, int, error) {
	return d.scripts.EvalAcked(ctx, s, replicas, timeout, func(command, body string, wait [2]string) (driver.Reply, int, error) {
		replies, err := d.follow(ctx, keys, scriptWords(command, body, keys, args), []any{"WAIT", wait[0], wait[1]})
		if err != nil {
			return driver.Reply{}, 0, err
		}
		var waitErr error
		if text, refused := replies[1].(resp.Error); refused {
			waitErr = adapter.NewServerError(string(text), text)
		}
		return adapter.AckedReply(replies[0], nil, replies[1], waitErr)
	})
}

// EvalMany implements driver.Batcher, with a connection per call.
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

// do sends a command once, and again only where MOVED or ASK say that it was not executed.
func (d *Driver) do(ctx context.Context, keys []string, words ...any) (any, error) {
	replies, err := d.follow(ctx, keys, words)
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// follow is do for several commands, sent together on one connection, of which the first decides. The others' error replies are
// among the replies.
func (d *Driver) follow(ctx context.Context, keys []string, commands ...[]any) ([]any, error) {
	if err := d.CheckOpen(); err != nil {
		return nil, err
	}
	addr := d.home(keys)
	var asking bool
	for {
		replies, err := d.send(ctx, addr, asking, commands)
		var text resp.Error
		if !errors.As(err, &text) {
			if err != nil {
				d.doubt(addr)
			}
			return replies, err
		}
		code, rest, _ := strings.Cut(string(text), " ")
		slot, to, _ := strings.Cut(rest, " ")
		asking = code == "ASK"
		switch {
		case d.cfg.Cluster && asking:
			addr = to
		case d.cfg.Cluster && code == "MOVED":
			addr = to
			n, err := strconv.Atoi(slot)
			if err != nil {
				return nil, fmt.Errorf("no slot in %w: %w", text, err)
			}
			d.mu.Lock()
			d.slots[n] = to
			d.mu.Unlock()
		default:
			return nil, adapter.NewServerError(string(text), err)
		}
	}
}

func (d *Driver) home(keys []string) string {
	if d.cfg.MasterName != "" {
		return "" // as Sentinels say
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(keys) > 0 {
		if addr, known := d.slots[redistest.Slot(keys[0])]; known {
			return addr
		}
	}
	return d.cfg.Addrs[d.ask%len(d.cfg.Addrs)]
}

// doubt forgets what is known of a node of a cluster that did not answer: others may have taken over.
func (d *Driver) doubt(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.slots, func(_ int, to string) bool { return to == addr })
	if d.cfg.Cluster && addr == d.cfg.Addrs[d.ask%len(d.cfg.Addrs)] {
		d.ask++
	}
}

// send sends commands on one connection, which it closes if ctx ends first.
func (d *Driver) send(ctx context.Context, addr string, asking bool, commands [][]any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, driver.NotSent(err)
	}
	c, err := d.conn(ctx, addr)
	if err != nil {
		return nil, driver.NotSent(ctxOr(ctx, err))
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	if asking {
		_, err = c.Do("ASKING")
	}
	var replies []any
	if err == nil {
		replies, err = exchange(c, commands)
	}
	var text resp.Error
	if answered := err == nil || errors.As(err, &text); !stop() || !answered {
		_ = c.Close() // it is of no use any more
		if !answered {
			return nil, ctxOr(ctx, err)
		}
		return replies, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.CheckOpen() != nil {
		return replies, errors.Join(err, c.Close())
	}
	d.idle[addr] = append(d.idle[addr], c)
	return replies, err
}

// exchange reads as many replies as it sends commands. The error is the first one's, or the connection's.
func exchange(c *resp.Conn, commands [][]any) (replies []any, err error) {
	for _, words := range commands {
		if err := c.Send(words...); err != nil {
			return nil, err
		}
	}
	for i := range commands {
		v, broken := c.Receive()
		if broken != nil {
			return nil, broken
		}
		reply := v.Any()
		if text, refused := reply.(resp.Error); refused && i == 0 {
			err = text
		}
		replies = append(replies, reply)
	}
	return replies, err
}

// ctxOr returns ctx's error where there is one: it closed the connection.
func ctxOr(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if _, bounded := ctx.Deadline(); bounded && errors.Is(err, os.ErrDeadlineExceeded) {
		return context.DeadlineExceeded // a socket may be quicker than ctx's timer
	}
	return err
}

func (d *Driver) conn(ctx context.Context, addr string) (*resp.Conn, error) {
	d.mu.Lock()
	if free := d.idle[addr]; len(free) > 0 {
		c := free[len(free)-1]
		d.idle[addr] = free[:len(free)-1]
		d.mu.Unlock()
		return c, nil
	}
	d.mu.Unlock()
	if d.cfg.MasterName != "" {
		return d.dialMaster(ctx)
	}
	return d.dial(ctx, addr)
}

// dialMaster asks the Sentinels, one after the other.
func (d *Driver) dialMaster(ctx context.Context) (*resp.Conn, error) {
	var errs []error
	for _, addr := range d.cfg.Addrs {
		sentinel, err := connect(ctx, addr, d.cfg.TLS)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		reply, err := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", d.cfg.MasterName)
		if err := errors.Join(err, sentinel.Close()); err != nil {
			errs = append(errs, err)
			continue
		}
		if pair, _ := reply.([]any); len(pair) == 2 {
			return d.dial(ctx, net.JoinHostPort(fmt.Sprint(pair[0]), fmt.Sprint(pair[1])))
		}
		errs = append(errs, fmt.Errorf("sentinel %s knows no master %q", addr, d.cfg.MasterName))
	}
	return nil, errors.Join(errs...)
}

// dial connects and logs in.
func (d *Driver) dial(ctx context.Context, addr string) (*resp.Conn, error) {
	c, err := connect(ctx, addr, d.cfg.TLS)
	if err != nil || d.cfg.Password == "" {
		return c, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	user := d.cfg.Username
	if user == "" {
		user = "default"
	}
	if _, err := c.Do("AUTH", user, d.cfg.Password); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func connect(ctx context.Context, addr string, cfg *tls.Config) (*resp.Conn, error) {
	var dialer net.Dialer
	tcp, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		return resp.NewConn(tcp), nil
	}
	secure := tls.Client(tcp, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, secure.Close())
	}
	return resp.NewConn(secure), nil
}

// feed opens a connection for the Hub.
func (d *Driver) feed(ctx context.Context) (adapter.Feed, error) {
	if d.cfg.MasterName != "" {
		c, err := d.dialMaster(ctx)
		return feed{c}, err
	}
	c, err := d.dial(ctx, d.cfg.Addrs[0])
	return feed{c}, err
}

type feed struct{ *resp.Conn }

func (f feed) Subscribe(channel string) error   { return f.Send("SUBSCRIBE", channel) }
func (f feed) Unsubscribe(channel string) error { return f.Send("UNSUBSCRIBE", channel) }

func (f feed) Next() (adapter.Event, error) {
	for {
		v, err := f.Receive()
		if err != nil {
			return adapter.Event{}, err
		}
		if text, failed := v.Any().(resp.Error); failed {
			return adapter.Event{Kind: adapter.Refused, Err: adapter.NewServerError(string(text), text)}, nil
		}
		words := v.Args()
		if len(words) != 3 {
			continue
		}
		switch words[0] {
		case "subscribe":
			return adapter.Event{Kind: adapter.Subscribed, Channel: words[1]}, nil
		case "unsubscribe":
			return adapter.Event{Kind: adapter.Unsubscribed, Channel: words[1]}, nil
		case "message":
			return adapter.Event{Kind: adapter.Message, Channel: words[1]}, nil
		}
	}
}

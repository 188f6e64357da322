package respdriver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// conn returns an idle connection to addr, or a new one.
func (d *Driver) conn(ctx context.Context, addr string) (*resp.Conn, error) {
	d.mu.Lock()
	if free := d.idle[addr]; len(free) > 0 {
		c := free[len(free)-1]
		d.idle[addr] = free[:len(free)-1]
		d.mu.Unlock()
		return c, nil
	}
	d.mu.Unlock()
	return d.dial(ctx, addr)
}

// putBack makes c an idle connection to addr, or closes it if the driver is closed.
func (d *Driver) putBack(addr string, c *resp.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.CheckOpen() != nil {
		_ = c.Close()
		return
	}
	d.idle[addr] = append(d.idle[addr], c)
}

// Close implements driver.Driver. It closes the idle connections too.
func (d *Driver) Close() error {
	err := d.Driver.Close()
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

// dial connects to the server at addr, or to the Sentinels' master, and logs in.
func (d *Driver) dial(ctx context.Context, addr string) (c *resp.Conn, err error) {
	if d.cfg.MasterName != "" {
		if addr, err = d.askSentinels(ctx); err != nil {
			return nil, err
		}
	}
	if c, err = d.connect(ctx, addr); err != nil || d.cfg.Password == "" {
		return c, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if _, err := do(c, "AUTH", cmp.Or(d.cfg.Username, "default"), d.cfg.Password); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// askSentinels asks one Sentinel after the other for the address of the master.
func (d *Driver) askSentinels(ctx context.Context) (addr string, err error) {
	for _, sentinel := range d.cfg.Addrs {
		c, dialErr := d.connect(ctx, sentinel)
		if dialErr != nil {
			err = errors.Join(err, dialErr)
			continue
		}
		reply, refusal := do(c, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", d.cfg.MasterName)
		_ = c.Close() // it has answered
		if pair, _ := reply.([]any); len(pair) == 2 {
			return net.JoinHostPort(fmt.Sprint(pair[0]), fmt.Sprint(pair[1])), nil
		}
		err = errors.Join(err, fmt.Errorf("sentinel %s names no master %q: %w", sentinel, d.cfg.MasterName,
			cmp.Or(refusal, errors.New("it does not know it"))))
	}
	return "", err
}

// connect opens a connection. It does not wait for a dialer that ignores ctx.
func (d *Driver) connect(ctx context.Context, addr string) (*resp.Conn, error) {
	dial := d.cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	tcp, err := adapter.Await(ctx, func() (net.Conn, error) { return dial(ctx, "tcp", addr) })
	if err != nil || d.cfg.TLS == nil {
		return resp.NewConn(tcp), err
	}
	secure := tls.Client(tcp, d.cfg.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, secure.Close())
	}
	return resp.NewConn(secure), nil
}

// do sends a command and returns its reply.
func do(c *resp.Conn, words ...any) (any, error) {
	if err := c.Send(words...); err != nil {
		return nil, err
	}
	return receive(c)
}

// receive returns the next reply. An error reply is a *driver.ServerError.
func receive(c *resp.Conn) (any, error) {
	v, err := c.Receive()
	if err != nil {
		return nil, err
	}
	if text, refused := v.Any().(resp.Error); refused {
		return nil, adapter.NewServerError(string(text), text)
	}
	return v.Any(), nil
}

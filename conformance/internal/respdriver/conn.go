package respdriver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
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
	if d.cfg.MasterName != "" {
		return d.dialMaster(ctx)
	}
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

// dialMaster asks the Sentinels for the master, one after the other, and connects to it.
func (d *Driver) dialMaster(ctx context.Context) (*resp.Conn, error) {
	var errs []error
	for _, addr := range d.cfg.Addrs {
		sentinel, err := d.connect(ctx, addr)
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
	c, err := d.connect(ctx, addr)
	if err != nil || d.cfg.Password == "" {
		return c, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if _, err := c.Do("AUTH", cmp.Or(d.cfg.Username, "default"), d.cfg.Password); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// connect opens a connection.
func (d *Driver) connect(ctx context.Context, addr string) (*resp.Conn, error) {
	dial, cfg := d.cfg.Dial, d.cfg.TLS
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	tcp, err := adapter.Await(ctx, func() (net.Conn, error) { return dial(ctx, "tcp", addr) })
	if pending, ok := errors.AsType[*driver.PendingError](err); ok {
		pending.OnAnswer(func(late any, err error) {
			if err == nil {
				_ = late.(net.Conn).Close() // it came too late
			}
		})
	}
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

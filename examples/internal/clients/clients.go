// Package clients connects the three clients of the examples, to an embedded server or to a real one.
package clients

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/alicebob/miniredis/v2"
	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

const dialTimeout = 3 * time.Second

// Server is where the clients connect to.
type Server struct {
	url      *url.URL
	embedded *miniredis.Miniredis // nil: a real one
}

// Open takes the URL of a server, or starts one in this process where that is empty.
func Open(address string) (*Server, error) {
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || (u.Scheme != "redis" && u.Scheme != "rediss") {
			return nil, fmt.Errorf("-redis %q is not of the form redis://[user:password@]host:port[/db]", address)
		}
		return &Server{url: u}, nil
	}
	m, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	m.ClockTTL(true)
	return &Server{url: &url.URL{Scheme: "redis", Host: m.Addr()}, embedded: m}, nil
}

// String shows the address without the password.
func (s *Server) String() string {
	if s.embedded != nil {
		return s.url.Host + " (embedded)"
	}
	return s.url.Redacted()
}

// Close stops an embedded server.
func (s *Server) Close() {
	if s.embedded != nil {
		s.embedded.Close()
	}
}

// Client is one worker's way to the server.
type Client struct {
	Name   string
	Driver driver.Driver
	closer func() error
}

// All are the clients that were connected.
type All []*Client

// Dial connects the three clients. What it returns is to be closed also where one of them fails.
func Dial(ctx context.Context, s *Server) (all All, err error) {
	logging.Disable() // go-redis writes its own lines to standard error otherwise
	for _, open := range []func(context.Context, *Server) (*Client, error){dialGoredis, dialRueidis, dialRedigo} {
		c, err := open(ctx, s)
		if c != nil {
			all = append(all, c)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Close closes the drivers and their clients.
func (all All) Close() error {
	var errs []error
	for _, c := range all {
		if c.Driver != nil {
			errs = append(errs, c.Driver.Close())
		}
		errs = append(errs, c.closer())
	}
	return errors.Join(errs...)
}

func dialGoredis(ctx context.Context, s *Server) (*Client, error) {
	opts, err := redis.ParseURL(s.url.String())
	if err != nil {
		return nil, err
	}
	opts.DialTimeout, opts.DialerRetries, opts.ContextTimeoutEnabled = dialTimeout, 1, true
	c := redis.NewClient(opts)
	self := &Client{Name: "go-redis", closer: c.Close}
	if err := c.Ping(ctx).Err(); err != nil {
		return self, err
	}
	self.Driver, err = goredis.New(c)
	return self, err
}

func dialRueidis(_ context.Context, s *Server) (*Client, error) {
	opts, err := rueidisclient.ParseURL(s.url.String())
	if err != nil {
		return nil, err
	}
	opts.Dialer.Timeout = dialTimeout
	if s.embedded != nil { // what miniredis does not know
		opts.DisableCache, opts.ForceSingleClient, opts.AlwaysRESP2 = true, true, true
	}
	c, err := rueidisclient.NewClient(opts)
	if err != nil {
		return nil, err
	}
	self := &Client{Name: "rueidis", closer: func() error { c.Close(); return nil }}
	self.Driver, err = rueidis.New(c)
	return self, err
}

func dialRedigo(_ context.Context, s *Server) (*Client, error) {
	pool := &redigoclient.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
		return redigoclient.DialURLContext(ctx, s.url.String(), redigoclient.DialConnectTimeout(dialTimeout))
	}}
	self := &Client{Name: "redigo", closer: pool.Close}
	drv, err := redigo.New(pool)
	self.Driver = drv
	return self, err
}

package main

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

// server is the Redis server of the clients.
type server struct {
	url      *url.URL
	embedded *miniredis.Miniredis // nil: a real one
}

// openServer takes the URL of a server, or starts one in this process if it is empty.
func openServer(address string) (*server, error) {
	if address != "" {
		u, err := url.Parse(address)
		if err != nil || u.Host == "" || (u.Scheme != "redis" && u.Scheme != "rediss") {
			return nil, fmt.Errorf("-redis %q is not of the form redis://[user:password@]host:port[/db]", address)
		}
		return &server{url: u}, nil
	}
	m, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	m.ClockTTL(true)
	return &server{url: &url.URL{Scheme: "redis", Host: m.Addr()}, embedded: m}, nil
}

// String shows the address without the password.
func (s *server) String() string {
	if s.embedded != nil {
		return s.url.Host + " (embedded)"
	}
	return s.url.Redacted()
}

// close stops an embedded server.
func (s *server) close() {
	if s.embedded != nil {
		s.embedded.Close()
	}
}

// client is one worker's way to the server.
type client struct {
	Name   string
	Driver driver.Driver
	closer func() error
}

// allClients are the connected clients.
type allClients []*client

var dialers = []func(context.Context, *server) (*client, error){dialGoredis, dialRueidis, dialRedigo}

// dialClients connects the three clients. Close the result even if one of them fails.
func dialClients(ctx context.Context, s *server) (all allClients, err error) {
	logging.Disable() // go-redis writes its own lines to standard error otherwise
	for _, dial := range dialers {
		c, err := dial(ctx, s)
		if c != nil {
			all = append(all, c)
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// close closes the drivers and their clients.
func (all allClients) close() error {
	var errs []error
	for _, c := range all {
		if c.Driver != nil {
			errs = append(errs, c.Driver.Close())
		}
		errs = append(errs, c.closer())
	}
	return errors.Join(errs...)
}

func dialGoredis(ctx context.Context, s *server) (*client, error) {
	opts, err := redis.ParseURL(s.url.String())
	if err != nil {
		return nil, err
	}
	opts.DialTimeout, opts.DialerRetries, opts.ContextTimeoutEnabled = dialTimeout, 1, true
	c := redis.NewClient(opts)
	self := &client{Name: "go-redis", closer: c.Close}
	if err := c.Ping(ctx).Err(); err != nil {
		return self, err
	}
	self.Driver, err = goredis.New(c)
	return self, err
}

func dialRueidis(_ context.Context, s *server) (*client, error) {
	opts, err := rueidisclient.ParseURL(s.url.String())
	if err != nil {
		return nil, err
	}
	opts.Dialer.Timeout = dialTimeout
	if s.embedded != nil { // unknown to miniredis
		opts.DisableCache, opts.ForceSingleClient, opts.AlwaysRESP2 = true, true, true
	}
	c, err := rueidisclient.NewClient(opts)
	if err != nil {
		return nil, err
	}
	self := &client{Name: "rueidis", closer: func() error { c.Close(); return nil }}
	self.Driver, err = rueidis.New(c)
	return self, err
}

func dialRedigo(_ context.Context, s *server) (*client, error) {
	pool := &redigoclient.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
		return redigoclient.DialURLContext(ctx, s.url.String(), redigoclient.DialConnectTimeout(dialTimeout))
	}}
	self := &client{Name: "redigo", closer: pool.Close}
	drv, err := redigo.New(pool)
	self.Driver = drv
	return self, err
}

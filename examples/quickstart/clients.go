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

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

const dialTimeout = 3 * time.Second

// server is where the clients connect to.
type server struct {
	url      *url.URL
	embedded *miniredis.Miniredis // nil: a real one
}

func open(address string) (*server, error) {
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

func (s *server) close() {
	if s.embedded != nil {
		s.embedded.Close()
	}
}

// client is one worker's way to the server.
type client struct {
	name   string
	locker locker.Locker
	drv    driver.Driver
	closer func() error
}

type clients []*client

// dial connects the three clients. A client that the driver of an earlier one fails is still returned, to be closed.
func dial(ctx context.Context, s *server) (all clients, err error) {
	logging.Disable() // go-redis writes its own lines to standard error otherwise
	for _, open := range []func(context.Context, *server) (*client, error){dialGoredis, dialRueidis, dialRedigo} {
		c, err := open(ctx, s)
		if c != nil {
			all = append(all, c)
		}
		if err != nil {
			return all, err
		}
		if c.locker, err = holdfast.New(c.drv, holdfast.Config{}); err != nil {
			return all, err
		}
	}
	return all, nil
}

func (all clients) close() error {
	var errs []error
	for _, c := range all {
		if c.drv != nil {
			errs = append(errs, c.drv.Close())
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
	self := &client{name: "go-redis", closer: c.Close}
	if err := c.Ping(ctx).Err(); err != nil {
		return self, err
	}
	self.drv, err = goredis.New(c)
	return self, err
}

func dialRueidis(_ context.Context, s *server) (*client, error) {
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
	self := &client{name: "rueidis", closer: func() error { c.Close(); return nil }}
	self.drv, err = rueidis.New(c)
	return self, err
}

func dialRedigo(_ context.Context, s *server) (*client, error) {
	pool := &redigoclient.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
		return redigoclient.DialURLContext(ctx, s.url.String(), redigoclient.DialConnectTimeout(dialTimeout))
	}}
	self := &client{name: "redigo", closer: pool.Close}
	drv, err := redigo.New(pool)
	self.drv = drv
	return self, err
}

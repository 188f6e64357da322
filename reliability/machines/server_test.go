package machines

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	redigoclient "github.com/gomodule/redigo/redis"
	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

const (
	name    = "job"
	counter = "{job}:fence"
	address = "127.0.0.1:6379" // never dialed
)

// server is a miniredis whose time is the bubble's, and a driver that reaches it without a network.
type server struct {
	*miniredis.Miniredis
	drv *faulty
}

type dial func(m *miniredis.Miniredis) (driver.Driver, func() error, error)

// providers are in the order in which a shrunk script prefers them.
var providers = []string{"goredis", "rueidis", "redigo"}

var dials = map[string]dial{
	"goredis": func(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
		c := goredisclient.NewClient(&goredisclient.Options{
			Addr: address, ContextTimeoutEnabled: true,
			Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		})
		drv, err := goredis.New(c)
		return drv, c.Close, err
	},
	"rueidis": func(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
		c, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{address}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
			ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10, RingScaleEachConn: 6,
			Dialer:            net.Dialer{KeepAlive: -1}, // no pings: hours may pass
			PipelineMultiplex: -1,                        // one connection: of several one is chosen at random
			DialCtxFn:         func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
		})
		if err != nil {
			return nil, nil, err
		}
		drv, err := rueidis.New(c)
		return drv, func() error { c.Close(); return nil }, err
	},
	"redigo": func(m *miniredis.Miniredis) (driver.Driver, func() error, error) {
		pool := &redigoclient.Pool{MaxIdle: 4, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
			return redigoclient.DialContext(ctx, "tcp", address, redigoclient.DialContextFunc(
				func(context.Context, string, string) (net.Conn, error) { return m.Dial() }))
		}}
		drv, err := redigo.New(pool)
		return drv, pool.Close, err
	},
}

func newServer(t *rapid.T, provider string) *server {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	drv, closeClient, err := dials[provider](m)
	if err != nil {
		t.Fatalf("%s: %v", provider, err)
	}
	s := &server{Miniredis: m, drv: &faulty{Driver: drv}}
	t.Cleanup(func() {
		s.drv.late.Wait()
		if err := errors.Join(s.drv.Close(), closeClient()); err != nil {
			t.Errorf("close: %v", err)
		}
		m.Close()
	})
	return s
}

// restart cuts all connections and forgets data and scripts.
func (s *server) restart(t *rapid.T) {
	s.Close()
	s.FlushAll()
	conn, err := s.Dial()
	if err == nil {
		c := resp.NewConn(conn)
		_, err = c.Do("SCRIPT", "FLUSH")
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		t.Fatalf("restart: %v", err)
	}
}

// reconnect uses the client until it has no connection left to the server that was: what is not
// repeated fails on those.
func (s *server) reconnect(t *rapid.T) {
	for range 10 {
		var wg sync.WaitGroup
		var failed atomic.Bool
		for range 4 {
			wg.Go(func() {
				if _, err := s.drv.Eval(context.Background(), ping, nil, nil); err != nil {
					failed.Store(true)
				}
			})
		}
		if wg.Wait(); !failed.Load() {
			return
		}
	}
	t.Fatalf("the client does not find the server again")
}

var ping = driver.NewScript(`return 1`)

// fence is the counter, 0 where there is none.
func (s *server) fence(t *rapid.T) int64 {
	if !s.Exists(counter) {
		return 0
	}
	text, err := s.Get(counter)
	if err != nil {
		t.Fatalf("fence counter: %v", err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("fence counter: %v", err)
	}
	return n
}

// end is when the hold with this token ends at the server; zero: there is no such live hold.
func (s *server) end(token string, hash bool) time.Time {
	if !hash {
		if value, err := s.Get(name); err != nil || value != token {
			return time.Time{}
		}
		return time.Now().Add(s.TTL(name))
	}
	return liveUntil(s.HGet(name, token))
}

func liveUntil(field string) time.Time {
	text, _, _ := strings.Cut(field, " ")
	ms, err := strconv.ParseInt(text, 10, 64)
	if till := time.UnixMilli(ms); err == nil && till.After(time.Now()) {
		return till
	}
	return time.Time{}
}

// count is how many live holds there are, and whether the key is a hash.
func (s *server) count(tokenLen int) (n int) {
	if !s.Exists(name) {
		return 0
	}
	if s.Type(name) != "hash" {
		return 1
	}
	fields, _ := s.HKeys(name)
	for _, f := range fields {
		if len(f) == tokenLen && !liveUntil(s.HGet(name, f)).IsZero() {
			n++
		}
	}
	return n
}

package machines

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/resp"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	name    = "job"
	counter = "{job}:fence"
	waiters = "{job}:waiters"
	address = "127.0.0.1:6379" // never dialed
)

// server is a miniredis on the bubble's time, and a driver that reaches it without a network.
type server struct {
	*miniredis.Miniredis
	drv *faulty
}

func newServer(t *rapid.T, client clients.Client) *server {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	drv, closeClient, err := client.InMemory(m.Dial)
	if err != nil {
		t.Fatalf("%s: %v", client.Name, err)
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

// reconnect uses the client until its connections to the earlier server are gone: commands without
// a resend fail on them.
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

// fence is the counter, 0 if missing.
func (s *server) fence() int64 {
	if !s.Exists(counter) {
		return 0
	}
	return locker.Must(strconv.ParseInt(locker.Must(s.Get(counter)), 10, 64))
}

// end is when the hold with this token ends at the server; zero: there is no such live hold.
func (s *server) end(token string, hash bool) time.Time {
	switch {
	case s.isSet():
		score, _ := s.ZScore(name, token)
		return liveUntil(strconv.FormatFloat(score, 'f', 0, 64))
	case !hash:
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

// isSet reports whether the key is a semaphore's.
func (s *server) isSet() bool { return s.Exists(name) && s.Type(name) == "zset" }

// count is how many live holds there are.
func (s *server) count(tokenLen int) (n int) {
	switch {
	case !s.Exists(name):
		return 0
	case s.isSet():
		members, _ := s.SortedSet(name)
		for member, score := range members {
			if len(member) > tokenLen && score > float64(time.Now().UnixMilli()) {
				n++
			}
		}
		return n
	case s.Type(name) != "hash":
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

package suite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// census records the keys of a case. None must be left when it is over.
type census struct {
	mu      sync.Mutex
	keys    []string        // parts of the names of the case's keys
	foreign map[string]bool // possibly written by the case itself
}

// writes are the commands of cases that write keys around the driver.
var writes = map[string]bool{"SET": true, "HSET": true, "LPUSH": true, "RPUSH": true, "SADD": true, "ZADD": true,
	"XADD": true, "SETEX": true, "PSETEX": true}

// made records a key of the case.
func (c *census) made(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, key)
}

// wrote records a key possibly written by the case itself, around the driver.
func (c *census) wrote(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wroteHere(key)
}

func (c *census) wroteHere(key string) {
	if c.foreign == nil {
		c.foreign = map[string]bool{}
	}
	c.foreign[key] = true
}

// stray returns the names in found that belong to the case and should not exist.
func (c *census) stray(found []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(found, func(name string) bool {
		return c.foreign[name] || !slices.ContainsFunc(c.keys,
			func(key string) bool { return strings.Contains(name, key) })
	})
}

// leavesNoKey demands that a case, its drivers closed, has left no key but fence counters, with an
// expiry unless CountersStay.
func (t *T) leavesNoKey() {
	t.Helper()
	if t.LeavesKeys || t.Failed() || t.Server.Given { // RunAt looks once, after all cases
		return
	}
	left := t.finally(func(ctx context.Context, s *Server) ([]string, error) {
		found, err := s.list(ctx, "KEYS", "*conformance.*")
		var stray []string
		for _, key := range t.made.stray(found) {
			if t.Suite.isCounter(key) {
				if t.Suite.CountersStay {
					continue
				}
				if ms, err := s.Do(ctx, key, "PTTL", key); err == nil && ms == int64(-1) {
					stray = append(stray, key+", a fence counter that never expires")
				}
				continue
			}
			stray = append(stray, key)
		}
		return stray, err
	})
	if len(left) > 0 {
		t.Errorf("the case is over, and leaves the keys %q", left)
	}
}

// leavesNoSubscription demands that no subscription is left once the last driver of a case is
// closed, and before its clients are.
func (t *T) leavesNoSubscription() {
	t.Helper()
	left := t.finally(func(ctx context.Context, s *Server) ([]string, error) {
		found, err := s.list(ctx, "PUBSUB", "CHANNELS", "*conformance.*")
		if s.Cluster != nil {
			sharded, _ := s.list(ctx, "PUBSUB", "SHARDCHANNELS", "*conformance.*") // unknown before Redis 7.0
			found = append(found, sharded...)
		}
		return t.made.stray(found), err
	})
	if len(left) > 0 {
		t.Errorf("the drivers are closed, and the server has subscribers to %q", left)
	}
}

// leavesNoConnection demands that no connection is left once all clients of a server are closed.
func leavesNoConnection(tb testing.TB, s *Server) {
	tb.Helper()
	if s == nil || tb.Failed() {
		return
	}
	left := finally(context.WithoutCancel(tb.Context()), s, s.limit(), connections)
	if len(left) > 0 {
		tb.Errorf("the clients are closed, and the server at %v has %q", s.Target.Addrs, left)
	}
}

// connections lists the connections to a server, except those of replicas, of Sentinels and of the
// list itself. A client counts even after another CLIENT command: some send one to connect.
func connections(ctx context.Context, s *Server) (left []string, err error) {
	if s.Mini != nil {
		if s.Mini.Server() == nil {
			return nil, nil // it was closed
		}
		if n := s.Mini.CurrentConnectionCount(); n > 0 {
			left = append(left, fmt.Sprintf("%d connections", n))
		}
		return left, nil
	}
	lines, err := s.list(ctx, "CLIENT", "LIST")
	for line := range strings.Lines(strings.Join(lines, "")) {
		switch {
		// Redis 6.2 names no subcommand; there argv-mem is 0 unless the command is running
		case strings.Contains(line, " cmd=client|list "),
			strings.Contains(line, " cmd=client ") && !strings.Contains(line, " argv-mem=0 "),
			strings.Contains(line, " flags=S"), strings.Contains(line, " flags=M"),
			// the last is of a slot on the move
			strings.Contains(line, " name=sentinel-"), strings.Contains(line, " cmd=restore"):
		default:
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left, err
}

// finally waits until look finds nothing on any server of the case, and returns the rest.
func (t *T) finally(look func(context.Context, *Server) ([]string, error)) []string {
	return finally(context.WithoutCancel(t.Ctx), t.Server, t.Limit, look)
}

// finally waits until look finds nothing on s and its nodes, and returns the rest. After
// three failed looks without a find it takes the server for closed.
func finally(ctx context.Context, s *Server, limit time.Duration,
	look func(context.Context, *Server) ([]string, error)) (left []string) {
	ctx, cancel := context.WithTimeout(ctx, 2*limit)
	defer cancel()
	begin := time.Now()
	servers := s.Nodes
	if servers == nil {
		servers = []*Server{s}
	}
	for failures := 0; ; {
		left = nil
		failed := false
		for _, s := range servers {
			found, err := look(ctx, s)
			left, failed = append(left, found...), failed || err != nil
		}
		if failed {
			failures++
		}
		if len(left) == 0 && (!failed || failures == 3) {
			return nil
		}
		if len(left) > 0 && time.Since(begin) > limit {
			return left
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(10 * PollEvery):
		}
	}
}

// list asks every node for names. If a node does not answer, it returns those of the others too.
func (s *Server) list(ctx context.Context, args ...any) (names []string, err error) {
	take := func(reply any, err error) error {
		list, ok := reply.([]any)
		if text, one := reply.(string); !ok && one {
			list = []any{text}
		}
		for _, name := range list {
			names = append(names, fmt.Sprint(name))
		}
		return err
	}
	if s.Cluster == nil {
		return names, take(s.Do(ctx, "", args...))
	}
	var errs []error
	for _, n := range s.Cluster.Nodes() {
		errs = append(errs, take(n.Do(ctx, args...)))
	}
	return names, errors.Join(errs...)
}

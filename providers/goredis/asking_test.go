package goredis_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/providers/goredis"
)

// node is a cluster node: answer gets each command in capitals.
func node(t *testing.T, answer func(args []string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for {
					var n int
					if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
						return
					}
					args := make([]string, n)
					for i := range args {
						var k int
						_, _ = fmt.Fscanf(r, "$%d\r\n", &k)
						line, _ := r.ReadString('\n')
						args[i] = strings.TrimRight(line, "\r\n")
					}
					if _, err := c.Write([]byte(answer(args))); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// ASK to a node that owns the slot by now and refuses ASKING: what the command answered counts.
func TestRefusedAskingIsNotTheCommands(t *testing.T) {
	var ran atomic.Bool
	b := node(t, func(args []string) string {
		switch strings.ToUpper(args[0]) {
		case "ASKING":
			return "-NOPERM this user has no permissions to run the 'asking' command\r\n"
		case "SET":
			ran.Store(true)
			return "+OK\r\n"
		}
		return "-ERR unknown\r\n"
	})
	var a string
	a = node(t, func(args []string) string {
		switch strings.ToUpper(args[0]) {
		case "SET":
			return "-ASK 1 " + b + "\r\n"
		case "CLUSTER":
			host, port, _ := net.SplitHostPort(a)
			return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%s\r\n", len(host), host, port)
		}
		return "-ERR unknown\r\n"
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{a}, ContextTimeoutEnabled: true, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	drv, err := goredis.New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer drv.Close()
	set, err := drv.SetNX(context.Background(), "k", "v", time.Second)
	if !ran.Load() || !set || err != nil {
		t.Errorf("set %v, error %v, ran %v; want what the node did", set, err, ran.Load())
	}
}

// A Ring inside another type has no subscriptions either, and does not panic.
func TestWrappedRingHasNoSubscriptions(t *testing.T) {
	t.Parallel()
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	drv, err := goredis.New(struct{ *redis.Ring }{ring})
	if err != nil {
		t.Fatal(err)
	}
	defer drv.Close()
	if _, err := drv.Subscribe(t.Context(), "c"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v; want ErrUnsupported", err)
	}
}

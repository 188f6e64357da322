package goredis_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/clients"
)

// If a node that owns the slot by now refuses ASKING, the answer to the command counts.
func TestRefusedAskingIsNotTheCommands(t *testing.T) {
	t.Parallel()
	clients.Bubble(t, func(t *testing.T) {
		to := &fake{answer: func(words []string) string {
			if words[0] == "asking" {
				return "-NOPERM this user has no permissions to run the 'asking' command\r\n"
			}
			return "+OK\r\n"
		}}
		from := &fake{answer: func([]string) string { return "-ASK 1 192.0.2.2:6379\r\n" }}
		opts := from.options()
		opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == opts.Addr {
				return from.dial(ctx, network, addr)
			}
			return to.dial(ctx, network, addr)
		}
		set, err := newDriver(t, cluster(opts)).SetNX(t.Context(), "k", "v", time.Second)
		if ran := to.count("SET"); ran != 1 || !set || err != nil {
			t.Errorf("set %v, error %v, ran %d times; want what the node did", set, err, ran)
		}
	})
}

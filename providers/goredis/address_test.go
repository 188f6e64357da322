package goredis

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
)

// A client with a Dialer of its own may have an address without a port.
func TestAddressOfADialer(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "project:region:instance", Dialer: func(context.Context, string, string) (net.Conn, error) {
		return nil, net.ErrClosed
	}})
	defer func() { _ = client.Close() }()
	check.Equal(t, "address", address(client), "project:region:instance")
	sentinels := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	defer func() { _ = sentinels.Close() }()
	check.Equal(t, "address behind Sentinels", address(sentinels), "")
}

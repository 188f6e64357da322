package rueidis

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/internal/memredis"
	"github.com/holdfast-go/holdfast/locker/driver/adapter"
)

// With RESP2 the client keeps a second connection for subscriptions. If it cannot be made, open
// fails, so the hub tries less and less often.
func TestOpenNeedsTheSecondConnection(t *testing.T) {
	check.InFakeTime(t, func(t *testing.T) {
		m := memredis.Start(t, memnet.New())
		p := faultproxy.StartOn(t, m.Net, m.Addr())
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{p.Addr()}, DisableCache: true, AlwaysRESP2: true, ForceSingleClient: true,
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return m.Net.Dial(ctx, "tcp", addr)
			},
		})
		check.Must(t, err)
		t.Cleanup(client.Close)
		_, release := client.Dedicate() // a first connection is in the pool
		p.Refuse()
		release()
		_, err = (&rueidisDriver{client: client}).open(t.Context())
		if !adapter.DialFailed(err) {
			t.Errorf("open: %v, want a failure to dial", err)
		}
	})
}

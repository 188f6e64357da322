package goredis_test

import (
	"crypto/tls"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// A client that trusts another CA never gets to send anything.
func TestUntrustedServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{TLS: redistest.ServerTLS})
	drv := newDriver(t, redis.NewClient(&redis.Options{
		Addr: server.Addr(), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, DialerRetries: 1,
	}))
	for name, operation := range operations {
		if err := operation(t.Context(), drv); err == nil || !driver.NotExecuted(err) {
			t.Errorf("%s: error %v, want one that says that nothing was sent", name, err)
		}
	}
}

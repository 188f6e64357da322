package security_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	goredisclient "github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// login is how a client introduces itself.
type login struct {
	addr           string
	user, password string
	tls            *tls.Config
}

// A dialer makes a driver over a client of its own. An error is of a client that connects at once.
type dialer func(t *testing.T, as login) (driver.Driver, error)

// dialers are by the provider's name. Each is what SECURITY.md advises for locks alone.
var dialers = map[string]dialer{"goredis": dialGoredis, "rueidis": dialRueidis, "redigo": dialRedigo}

func dialGoredis(t *testing.T, as login) (driver.Driver, error) {
	client := goredisclient.NewClient(&goredisclient.Options{
		Addr: as.addr, Username: as.user, Password: as.password, TLSConfig: as.tls, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = client.Close() })
	return closing(t)(goredis.New(client))
}

func dialRueidis(t *testing.T, as login) (driver.Driver, error) {
	client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
		InitAddress: []string{as.addr}, Username: as.user, Password: as.password, TLSConfig: as.tls,
		DisableCache: true, ForceSingleClient: true,
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(client.Close)
	return closing(t)(rueidis.New(client))
}

func dialRedigo(t *testing.T, as login) (driver.Driver, error) {
	options := []redis.DialOption{redis.DialUsername(as.user), redis.DialPassword(as.password), redis.DialConnectTimeout(2 * time.Second)}
	if as.tls != nil {
		options = append(options, redis.DialContextFunc((&tls.Dialer{Config: as.tls}).DialContext))
	}
	pool := clients.RedigoPool(as.addr, options...)
	t.Cleanup(func() { _ = pool.Close() })
	return closing(t)(redigo.New(pool))
}

// closing closes a driver at the end of the test, before its client.
func closing(t *testing.T) func(driver.Driver, error) (driver.Driver, error) {
	return func(drv driver.Driver, err error) (driver.Driver, error) {
		if err == nil {
			t.Cleanup(func() { _ = drv.Close() })
		}
		return drv, err
	}
}

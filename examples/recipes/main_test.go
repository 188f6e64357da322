package recipes_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/ncruces/go-sqlite3"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/tetratelabs/wazero"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
)

func TestMain(m *testing.M) {
	logging.Disable()                                            // the examples stop servers: go-redis would log it
	sqlite3.RuntimeConfig = wazero.NewRuntimeConfigInterpreter() // it starts at once; programs leave it out
	goleak.VerifyTestMain(m)
}

// backend is the shared connection of a program: here an embedded server, and go-redis.
type backend struct {
	server *miniredis.Miniredis
	client *redis.Client
	driver driver.Driver
}

func connect() *backend {
	b := &backend{server: miniredis.NewMiniRedis()}
	if err := b.server.Start(); err != nil {
		panic(err)
	}
	b.server.ClockTTL(true) // without it, keys do not expire by themselves
	b.client = redis.NewClient(&redis.Options{Addr: b.server.Addr(), ContextTimeoutEnabled: true})
	b.driver = locker.Must(goredis.New(b.client))
	return b
}

func (b *backend) close() {
	_ = b.driver.Close()
	_ = b.client.Close()
	b.server.Close()
}

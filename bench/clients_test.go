package bench

import (
	"context"
	"testing"
	"time"

	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/providers/redigo"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// ttl is the lease in every benchmark.
const ttl = 30 * time.Second

// compareAndDelete is the release script of the Redis documentation.
const compareAndDelete = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`

var script = driver.NewScript(compareAndDelete)

// bareCycle is one cycle of a bare client as a careful user would write it: SET key token NX PX
// ttl, then the compare-and-delete by digest.
type bareCycle = func(ctx context.Context, key, token string) error

// client is one provider, and its bare client with the scripts loaded.
type client struct {
	name string
	open func(b *testing.B, addr string) (driver.Driver, bareCycle)
	// pipeline opens a bare client that renews locks, in one round trip.
	pipeline func(b *testing.B, addr string) func(names []string) error
	// eval opens a bare client that runs scripts.
	eval func(b *testing.B, addr string) func(s *driver.Script, key string, args ...string) error
}

// go-redis comes twice: as providers/goredis asks for it, and with the options as they are by
// default.
var clients = []client{
	{"goredis", openGoredis(true), goredisPipeline(true), goredisEval(true)},
	{"goredis-defaults", openGoredis(false), goredisPipeline(false), goredisEval(false)},
	{"rueidis", openRueidis, rueidisPipeline, rueidisEval},
	{"redigo", openRedigo, redigoPipeline, redigoEval},
}

func openGoredis(contextTimeoutEnabled bool) func(*testing.B, string) (driver.Driver, bareCycle) {
	return func(b *testing.B, addr string) (driver.Driver, bareCycle) {
		c := goredisBare(b, addr, contextTimeoutEnabled)
		return locker.Must(goredis.New(c)), func(ctx context.Context, key, token string) error {
			if err := c.SetArgs(ctx, key, token, redis.SetArgs{Mode: "NX", TTL: ttl}).Err(); err != nil {
				return err
			}
			return c.EvalSha(ctx, script.Digest(), []string{key}, token).Err()
		}
	}
}

func openRueidis(b *testing.B, addr string) (driver.Driver, bareCycle) {
	c := rueidisBare(b, addr)
	return locker.Must(rueidis.New(c)), func(ctx context.Context, key, token string) error {
		if err := c.Do(ctx, c.B().Set().Key(key).Value(token).Nx().Px(ttl).Build()).Error(); err != nil {
			return err
		}
		return c.Do(ctx, c.B().Evalsha().Sha1(script.Digest()).Numkeys(1).Key(key).Arg(token).Build()).Error()
	}
}

func openRedigo(b *testing.B, addr string) (driver.Driver, bareCycle) {
	pool := redigoBare(b, addr)
	return locker.Must(redigo.New(pool)), func(ctx context.Context, key, token string) error {
		do := func(command string, args ...any) error {
			conn, err := pool.GetContext(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			if ctx.Done() == nil {
				_, err = conn.Do(command, args...)
			} else {
				_, err = redigoclient.DoContext(conn, ctx, command, args...)
			}
			return err
		}
		if err := do("SET", key, token, "NX", "PX", ttl.Milliseconds()); err != nil {
			return err
		}
		return do("EVALSHA", script.Digest(), 1, key, token)
	}
}

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// watchedTTL is the lease of renewed locks.
const watchedTTL = 10 * time.Second

// expireScript is a minimal renewal.
var expireScript = driver.NewScript(
	`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) else return 0 end`)

// token is the value of the bare clients' locks.
const token = "MDEyMzQ1Njc4OWFiY2RlZg"

// scripts are all scripts of the bare clients; they are loaded before.
var scripts = []*driver.Script{script, expireScript, hashAcquire, hashRelease}

// The evals run a script about one key by the bare client, by its digest, and demand the answer 1.

func goredisEval(contextTimeoutEnabled bool) func(*testing.B, string) func(*driver.Script, string, ...string) error {
	return func(b *testing.B, addr string) func(*driver.Script, string, ...string) error {
		c := goredisBare(b, addr, contextTimeoutEnabled)
		return func(s *driver.Script, key string, args ...string) error {
			words := make([]any, len(args))
			for i, arg := range args {
				words[i] = arg
			}
			return one(c.EvalSha(context.Background(), s.Digest(), []string{key}, words...).Int64())
		}
	}
}

func rueidisEval(b *testing.B, addr string) func(*driver.Script, string, ...string) error {
	c := rueidisBare(b, addr)
	return func(s *driver.Script, key string, args ...string) error {
		return one(c.Do(context.Background(), c.B().Evalsha().Sha1(s.Digest()).Numkeys(1).Key(key).Arg(args...).Build()).AsInt64())
	}
}

func redigoEval(b *testing.B, addr string) func(*driver.Script, string, ...string) error {
	pool := redigoBare(b, addr)
	return func(s *driver.Script, key string, args ...string) error {
		conn := pool.Get()
		defer conn.Close()
		words := []any{s.Digest(), 1, key}
		for _, arg := range args {
			words = append(words, arg)
		}
		return one(redigoclient.Int64(conn.Do("EVALSHA", words...)))
	}
}

// The pipelines renew locks by the bare client, in one round trip, and look at each answer.

func goredisPipeline(contextTimeoutEnabled bool) func(*testing.B, string) func([]string) error {
	return func(b *testing.B, addr string) func([]string) error {
		c := goredisBare(b, addr, contextTimeoutEnabled)
		return func(names []string) error {
			pipe := c.Pipeline()
			cmds := make([]*redis.Cmd, len(names))
			for i, name := range names {
				cmds[i] = pipe.EvalSha(context.Background(), expireScript.Digest(), []string{name}, token, watchedTTL.Milliseconds())
			}
			if _, err := pipe.Exec(context.Background()); err != nil {
				return err
			}
			for _, cmd := range cmds {
				if err := one(cmd.Int64()); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func rueidisPipeline(b *testing.B, addr string) func([]string) error {
	c := rueidisBare(b, addr)
	ms := fmt.Sprint(watchedTTL.Milliseconds())
	return func(names []string) error {
		cmds := make(rueidisclient.Commands, len(names))
		for i, name := range names {
			cmds[i] = c.B().Evalsha().Sha1(expireScript.Digest()).Numkeys(1).Key(name).Arg(token, ms).Build()
		}
		for _, res := range c.DoMulti(context.Background(), cmds...) {
			if err := one(res.AsInt64()); err != nil {
				return err
			}
		}
		return nil
	}
}

func redigoPipeline(b *testing.B, addr string) func([]string) error {
	pool := redigoBare(b, addr)
	return func(names []string) error {
		conn := pool.Get()
		defer conn.Close()
		for _, name := range names {
			if err := conn.Send("EVALSHA", expireScript.Digest(), 1, name, token, watchedTTL.Milliseconds()); err != nil {
				return err
			}
		}
		if err := conn.Flush(); err != nil {
			return err
		}
		for range names {
			if err := one(redigoclient.Int64(conn.Receive())); err != nil {
				return err
			}
		}
		return nil
	}
}

func one(n int64, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("a script answered %d", n)
	}
	return err
}

// The bare clients know all scripts.

func goredisBare(b *testing.B, addr string, contextTimeoutEnabled bool) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: contextTimeoutEnabled})
	b.Cleanup(func() { _ = c.Close() })
	for _, s := range scripts {
		check.Must(b, c.ScriptLoad(b.Context(), s.Source()).Err())
	}
	return c
}

func rueidisBare(b *testing.B, addr string) rueidisclient.Client {
	c := locker.Must(rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{addr}, DisableCache: true}))
	b.Cleanup(c.Close)
	for _, s := range scripts { // a cancellable context would switch the connection to pipelining for good
		check.Must(b, c.Do(context.Background(), c.B().ScriptLoad().Script(s.Source()).Build()).Error())
	}
	return c
}

func redigoBare(b *testing.B, addr string) *redigoclient.Pool {
	pool := &redigoclient.Pool{MaxIdle: 32, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
		return redigoclient.DialContext(ctx, "tcp", addr)
	}}
	b.Cleanup(func() { _ = pool.Close() })
	conn := pool.Get()
	defer conn.Close()
	for _, s := range scripts {
		locker.Must(conn.Do("SCRIPT", "LOAD", s.Source()))
	}
	return pool
}

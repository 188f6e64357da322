package contender

import (
	"context"

	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"
	rueidisclient "github.com/redis/rueidis"
)

// The clients have the same settings for all libraries: their defaults, except those set here.

// idle is how many connections a redigo pool keeps: one for each goroutine of most works. By
// default it keeps none.
const idle = 64

func openGoredis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
}

func openRueidis(addr string) (rueidisclient.Client, error) {
	return rueidisclient.NewClient(rueidisclient.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

func openRedigo(addr string) *redigoclient.Pool {
	return &redigoclient.Pool{MaxIdle: idle, DialContext: func(ctx context.Context) (redigoclient.Conn, error) {
		return redigoclient.DialContext(ctx, "tcp", addr)
	}}
}

// forEach opens one client for each address. Its close closes the opened ones, even after a failure
// of another.
func forEach[T any](addrs []string, open func(addr string) (T, func(), error)) ([]T, func(), error) {
	var all []T
	var closers []func()
	closeAll := func() {
		for _, c := range closers {
			c()
		}
	}
	for _, addr := range addrs {
		one, closeOne, err := open(addr)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all, closers = append(all, one), append(closers, closeOne)
	}
	return all, closeAll, nil
}

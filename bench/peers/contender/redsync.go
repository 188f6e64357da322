package contender

import (
	"context"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	goredispool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redigopool "github.com/go-redsync/redsync/v4/redis/redigo"
	rueidispool "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

var (
	pollEachMillisecond = redsync.WithRetryDelay(time.Millisecond)
	failFast            = redsync.WithFailFast(true)
)

// redsyncMutex is a Lock.
type redsyncMutex redsync.Mutex

// Release implements Lock.
func (m *redsyncMutex) Release(ctx context.Context) error {
	held, err := (*redsync.Mutex)(m).UnlockContext(ctx)
	if held {
		return nil // a failure of fewer nodes than a quorum does not count
	}
	if err == nil {
		err = errNotHeld
	}
	return err
}

// redsyncOver returns the constructor of redsync over a client's pools: its default pauses of 50 to
// 250 ms unless more says otherwise, and no end of tries.
func redsyncOver(
	open func(addrs []string) ([]redis.Pool, func(), error), more ...redsync.Option,
) func(Options) (*Locks, error) {
	return func(opts Options) (*Locks, error) {
		pools, closeAll, err := open(opts.Addrs)
		if err != nil {
			return nil, err
		}
		rs := redsync.New(pools...)
		open, end := context.WithCancel(context.Background())
		options := append([]redsync.Option{redsync.WithExpiry(opts.TTL), redsync.WithTries(math.MaxInt32)}, more...)
		return &Locks{
			Acquire: func(name string) (Lock, error) {
				m := rs.NewMutex(name, options...)
				if err := m.LockContext(open); err != nil {
					return nil, err
				}
				return (*redsyncMutex)(m), nil
			},
			Close: func() { end(); closeAll() },
		}, nil
	}
}

func goredisPools(addrs []string) ([]redis.Pool, func(), error) {
	return forEach(addrs, func(addr string) (redis.Pool, func(), error) {
		c := openGoredis(addr)
		return goredispool.NewPool(c), func() { c.Close() }, nil
	})
}

func rueidisPools(addrs []string) ([]redis.Pool, func(), error) {
	return forEach(addrs, func(addr string) (redis.Pool, func(), error) {
		c, err := openRueidis(addr)
		if err != nil {
			return nil, nil, err
		}
		return rueidispool.NewPool(rueidiscompat.NewAdapter(c)), c.Close, nil
	})
}

func redigoPools(addrs []string) ([]redis.Pool, func(), error) {
	return forEach(addrs, func(addr string) (redis.Pool, func(), error) {
		c := openRedigo(addr)
		return redigopool.NewPool(c), func() { c.Close() }, nil
	})
}

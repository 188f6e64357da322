package gopeer

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

type redislockLibrary struct{ client *redislock.Client }

func newRedislock(addr string) library {
	return redislockLibrary{redislock.New(redis.NewClient(&redis.Options{Addr: addr}))}
}

func (r redislockLibrary) acquire(name string, ttl, wait time.Duration, token string) (lock, error) {
	opts := &redislock.Options{Token: token}
	obtain := func(ctx context.Context) (*redislock.Lock, error) { return r.client.Obtain(ctx, name, ttl, opts) }
	var held *redislock.Lock
	var err error
	if wait == 0 {
		held, err = obtain(context.Background())
	} else {
		opts.RetryStrategy = redislock.LinearBackoff(100 * time.Millisecond) // as in its README
		held, err = bounded(wait, obtain)
	}
	return redislockLock{held}, lost(err, redislock.ErrNotObtained)
}

type redislockLock struct{ l *redislock.Lock }

func (l redislockLock) renew(ttl time.Duration) error {
	return lost(l.l.Refresh(context.Background(), ttl, nil), redislock.ErrNotObtained)
}

func (l redislockLock) release() error {
	return lost(l.l.Release(context.Background()), redislock.ErrLockNotHeld)
}

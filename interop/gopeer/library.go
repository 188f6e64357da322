package gopeer

import (
	"context"
	"errors"
	"time"
)

// errNo is the outcome "no": refused, or not held any more.
var errNo = errors.New("no")

// library is a lock library with a client.
type library interface {
	// acquire makes one attempt if wait is 0. Otherwise it waits for so long. A token is the value
	// to store, if the library has that.
	acquire(name string, ttl, wait time.Duration, token string) (lock, error)
}

// lock is a held lock.
type lock interface {
	renew(ttl time.Duration) error
	release() error
}

// open opens a library at a server. prefix is Holdfast's.
func open(kind, addr, prefix string) (library, error) {
	switch kind {
	case "redsync":
		return newRedsync(addr), nil
	case "redislock":
		return newRedislock(addr), nil
	case "rueidislock":
		return newRueidislock(addr, 1)
	case "rueidislock-majority":
		return newRueidislock(addr, 2)
	default:
		return newHoldfast(kind, addr, prefix)
	}
}

// bounded calls f with a context that ends after wait.
func bounded[T any](wait time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	v, err := f(ctx)
	if err != nil && ctx.Err() != nil {
		err = errNo
	}
	return v, err
}

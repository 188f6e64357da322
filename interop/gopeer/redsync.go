package gopeer

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type redsyncLibrary struct{ rs *redsync.Redsync }

func newRedsync(addr string) library {
	return redsyncLibrary{redsync.New(goredis.NewPool(redis.NewClient(&redis.Options{Addr: addr})))}
}

func (r redsyncLibrary) acquire(name string, ttl, wait time.Duration, _ string) (lock, error) {
	m := r.rs.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt32))
	if wait == 0 {
		return redsyncLock{m}, taken(true, m.TryLockContext(context.Background()))
	}
	_, err := bounded(wait, func(ctx context.Context) (*redsync.Mutex, error) { return m, m.LockContext(ctx) })
	return redsyncLock{m}, taken(true, err)
}

type redsyncLock struct{ m *redsync.Mutex }

// renew extends by the expiry of the acquire, whatever ttl is.
func (l redsyncLock) renew(time.Duration) error { return taken(l.m.Extend()) }

func (l redsyncLock) release() error { return taken(l.m.Unlock()) }

// taken returns errNo if the lock is another's, or not held any more.
func taken(ok bool, err error) error {
	if _, is := errors.AsType[*redsync.ErrTaken](err); is || !ok && err == nil {
		return errNo
	}
	return lost(err, redsync.ErrLockAlreadyExpired, redsync.ErrExtendFailed)
}

package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// held is a lock of any of the libraries.
type held struct {
	renew, release func() error
}

// library makes one attempt at the lock in a key.
type library func(ctx context.Context, key string) (held, error)

func redislockLibrary(client *redis.Client) library {
	return func(ctx context.Context, key string) (held, error) {
		lock, err := redislock.Obtain(ctx, client, key, expiry, nil)
		return held{
			func() error { return lock.Refresh(ctx, expiry, nil) },
			func() error { return lock.Release(ctx) },
		}, err
	}
}

func redsyncLibrary(client *redis.Client) library {
	return func(ctx context.Context, key string) (held, error) {
		mutex := redsync.New(redsyncpool.NewPool(client)).NewMutex(key, redsync.WithExpiry(expiry))
		err := mutex.TryLockContext(ctx)
		return held{
			func() error { _, err := mutex.ExtendContext(ctx); return err },
			func() error { _, err := mutex.UnlockContext(ctx); return err },
		}, err
	}
}

func holdfastLibrary(t *testing.T, client *redis.Client) library {
	t.Helper()
	drv := locker.Must(goredis.New(client))
	t.Cleanup(func() { _ = drv.Close() })
	l := locker.Must(single.New(drv, single.Config{TTL: expiry, AttemptTimeout: time.Minute}))
	return func(ctx context.Context, key string) (held, error) {
		lock, err := l.Acquire(ctx, locker.Request{Name: key, NoWait: true})
		return held{
			func() error { return lock.Renew(ctx, 0) },
			func() error { return lock.Release(ctx) },
		}, err
	}
}

// is reports whether err is, or contains, an error of that type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// The libraries return these errors in the same situation, and none renews or releases another's
// lock.
func TestMigrationErrors(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	down := redistest.Start(t, redistest.Options{})
	check.Must(t, down.Kill())
	type errorsOf struct{ refused, renewLate, releaseLate, releaseAgain, outage func(error) bool }
	lost := func(err error) bool { return errors.Is(err, locker.ErrLost) }
	taken := is[*redsync.ErrTaken]
	libraries := []struct {
		name string
		on   func(*redis.Client) library
		errorsOf
	}{
		{"redislock", redislockLibrary, errorsOf{
			func(err error) bool { return errors.Is(err, redislock.ErrNotObtained) },
			func(err error) bool { return errors.Is(err, redislock.ErrNotObtained) },
			func(err error) bool { return errors.Is(err, redislock.ErrLockNotHeld) },
			func(err error) bool { return errors.Is(err, redislock.ErrLockNotHeld) },
			func(err error) bool { return !errors.Is(err, redislock.ErrNotObtained) }, // the error of go-redis
		}},
		{"redsync", redsyncLibrary, errorsOf{
			taken, taken, taken,
			func(err error) bool { return errors.Is(err, redsync.ErrLockAlreadyExpired) },
			is[*redsync.RedisError],
		}},
		{"holdfast", func(client *redis.Client) library { return holdfastLibrary(t, client) }, errorsOf{
			func(err error) bool { return errors.Is(err, locker.ErrNotAcquired) }, lost, lost,
			func(err error) bool { return errors.Is(err, locker.ErrReleased) },
			func(err error) bool { return driver.Transient(err) && !errors.Is(err, locker.ErrNotAcquired) },
		}},
	}
	client := clientsOf(t, []*redistest.Server{server})[0]
	expect := func(t *testing.T, what string, err error, expected func(error) bool) {
		t.Helper()
		if err == nil || !expected(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i, pair := range [][2]int{{0, 2}, {2, 0}, {1, 2}, {2, 1}} {
		first, next := libraries[pair[0]], libraries[pair[1]]
		t.Run(first.name+" before "+next.name, func(t *testing.T) {
			t.Parallel()
			ctx, key := t.Context(), fmt.Sprint("lock:invoice:", i)
			old, err := first.on(client)(ctx, key)
			check.Must(t, err)
			_, err = next.on(client)(ctx, key)
			expect(t, next.name+" is refused", err, next.refused)
			client.Del(ctx, key) // as if its lease had ended
			present := locker.Must(next.on(client)(ctx, key))
			value := client.Get(ctx, key).Val()
			client.PExpire(ctx, key, expiry/2)
			expect(t, first.name+" renews late", old.renew(), first.renewLate)
			expect(t, first.name+" releases late", old.release(), first.releaseLate)
			if now := client.Get(ctx, key).Val(); now != value || client.PTTL(ctx, key).Val() > expiry/2 {
				t.Errorf("the lock of %s is now %q, was %q", next.name, now, value)
			}
			check.Error(t, next.name, errors.Join(present.renew(), present.release()))
			expect(t, first.name+" releases again, and nobody holds it", old.release(), first.releaseAgain)
		})
	}
	for _, l := range libraries {
		t.Run(l.name+" in an outage", func(t *testing.T) {
			t.Parallel()
			_, err := l.on(clientsOf(t, []*redistest.Server{down})[0])(t.Context(), "lock:invoice:42")
			expect(t, "acquire", err, l.outage)
		})
	}
}

package contender

import (
	"context"
	"errors"

	redigoclient "github.com/gomodule/redigo/redis"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// A bare client sends the commands of a careful user for an uncontended lock: SET key token NX PX
// ttl, then the compare-and-delete script by its digest. The script is loaded before.

// compareAndDelete is the release script of the Redis documentation.
const compareAndDelete = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`

var (
	digest      = driver.NewScript(compareAndDelete).Digest()
	errNotHeld  = errors.New("the lock was not held")
	errNotTaken = errors.New("the lock is held by another")
)

// bareLock is a lock of a bare client: unlock runs the script.
type bareLock struct {
	unlock     func(ctx context.Context, key, token string) (deleted int64, err error)
	key, token string
}

// Release implements Lock.
func (l *bareLock) Release(ctx context.Context) error {
	deleted, err := l.unlock(ctx, l.key, l.token)
	if err == nil && deleted == 0 {
		err = errNotHeld
	}
	return err
}

func bareGoredis(opts Options) (*Locks, error) {
	c := openGoredis(opts.Addrs[0])
	if err := c.ScriptLoad(context.Background(), compareAndDelete).Err(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	unlock := func(ctx context.Context, key, token string) (int64, error) {
		return c.EvalSha(ctx, digest, []string{key}, token).Int64()
	}
	return &Locks{
		Acquire: func(name string) (Lock, error) {
			token := lease.NewToken()
			err := c.SetArgs(context.Background(), name, token, redis.SetArgs{Mode: "NX", TTL: opts.TTL}).Err()
			if err != nil {
				return nil, err
			}
			return &bareLock{unlock, name, token}, nil
		},
		Close: func() { c.Close() },
	}, nil
}

func bareRueidis(opts Options) (*Locks, error) {
	c, err := openRueidis(opts.Addrs[0])
	if err != nil {
		return nil, err
	}
	if err := c.Do(context.Background(), c.B().ScriptLoad().Script(compareAndDelete).Build()).Error(); err != nil {
		c.Close()
		return nil, err
	}
	unlock := func(ctx context.Context, key, token string) (int64, error) {
		return c.Do(ctx, c.B().Evalsha().Sha1(digest).Numkeys(1).Key(key).Arg(token).Build()).AsInt64()
	}
	return &Locks{
		Acquire: func(name string) (Lock, error) {
			token := lease.NewToken()
			err := c.Do(context.Background(), c.B().Set().Key(name).Value(token).Nx().Px(opts.TTL).Build()).Error()
			if err != nil {
				return nil, err
			}
			return &bareLock{unlock, name, token}, nil
		},
		Close: c.Close,
	}, nil
}

func bareRedigo(opts Options) (*Locks, error) {
	pool := openRedigo(opts.Addrs[0])
	do := func(ctx context.Context, command string, args ...any) (any, error) {
		conn, err := pool.GetContext(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		return conn.Do(command, args...)
	}
	if _, err := do(context.Background(), "SCRIPT", "LOAD", compareAndDelete); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	unlock := func(ctx context.Context, key, token string) (int64, error) {
		return redigoclient.Int64(do(ctx, "EVALSHA", digest, 1, key, token))
	}
	return &Locks{
		Acquire: func(name string) (Lock, error) {
			token := lease.NewToken()
			reply, err := do(context.Background(), "SET", name, token, "NX", "PX", opts.TTL.Milliseconds())
			switch {
			case err != nil:
				return nil, err
			case reply == nil:
				return nil, errNotTaken
			}
			return &bareLock{unlock, name, token}, nil
		},
		Close: func() { pool.Close() },
	}, nil
}

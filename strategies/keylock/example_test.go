package keylock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/keylock"
)

// read reads the lock, a hash with the fields value, owner, note and fence, into hold. Each script
// begins with it.
const read = `
local hold = redis.pcall('HMGET', KEYS[1], 'value', 'owner', 'note', 'fence')
if hold.err then return hold end
local ours, fence, text = hold[1] == ARGV[1], hold[4] or '0', nil
`

// newExclusive returns a Locker over hashes.
func newExclusive(drv driver.Driver, cfg keylock.Config) (*keylock.Locker, error) {
	script := func(lua string) *driver.Script {
		return driver.NewScript(keylock.Lua(read + lua))
	}
	return keylock.New(drv, cfg, keylock.Spec{
		Name: "exclusive",
		Acquire: script(`
			if ours then return {2, fence} end
			if hold[1] then return {0, hold[2], hold[3], redis.call('PTTL', KEYS[1])} end
			if redis.call('EXISTS', KEYS[1]) == 1 then return {-2, 'a hash that is no lock'} end
			fence, text = mint_fence(KEYS[2], ARGV[3])
			if not fence then return {-1, text} end
			redis.call('HSET', KEYS[1], 'value', ARGV[1], 'owner', ARGV[4], 'note', ARGV[5], 'fence', fence)
			redis.call('PEXPIRE', KEYS[1], ARGV[2])
			return {1, fence}`),
		Renew: script(`
			if not ours then return 0 end
			redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
			renew_fence(KEYS[2], ARGV[3])
			return 1`),
		Release: script(`
			if not ours then return 0 end
			redis.call('DEL', KEYS[1])
			if ARGV[2] ~= '' then redis.pcall('PUBLISH', ARGV[2], '') end
			return 1`),
		Resume: script(`
			if ours then return {2, fence} end
			if hold[1] ~= ARGV[4] then return {0} end
			fence, text = mint_fence(KEYS[2], ARGV[3])
			if not fence then return {-1, text} end
			redis.call('HSET', KEYS[1], 'value', ARGV[1], 'fence', fence)
			redis.call('PEXPIRE', KEYS[1], math.max(redis.call('PTTL', KEYS[1]), tonumber(ARGV[2])))
			return {1, fence}`),
		UndoResume: script(`
			if not ours then return 0 end
			redis.call('HSET', KEYS[1], 'value', ARGV[2])
			return 1`),
		RaiseFence: script(`
			if not ours then return {0} end
			local next, last = next_fence(KEYS[2])
			if not next then return {-1, last} end
			fence = raise_fence(KEYS[2], ARGV[2], last, ARGV[3])
			redis.call('HSET', KEYS[1], 'fence', fence)
			return {1, fence}`),
		Inspect: script(`
			if not hold[1] then return {0} end
			return {1, hold[2], hold[3], redis.call('PTTL', KEYS[1]), 1, 0}`),
	})
}

// A few scripts make a strategy. The engine sends them, resolves unknown outcomes, cleans up behind
// abandoned acquires, and mints fencing tokens with them.
func Example() {
	server, _ := miniredis.Run() // stands for a Redis server
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), ContextTimeoutEnabled: true})
	defer client.Close()
	drv := locker.Must(goredis.New(client))
	defer drv.Close()
	l := locker.Must(newExclusive(drv, keylock.Config{}))

	ctx := context.Background()
	lock := locker.Must(l.Acquire(ctx, locker.Request{Name: "invoice:42", TTL: time.Minute, Fenced: true, Owner: "worker 1"}))
	fmt.Println(lock.Fence() > 0, locker.Must(l.Inspect(ctx, "invoice:42")).Owner)

	_, err := l.Acquire(ctx, locker.Request{Name: "invoice:42", NoWait: true})
	fmt.Println(errors.Is(err, locker.ErrNotAcquired))

	lock = locker.Must(locker.Resume(ctx, l, lock.Handle())) // as another process may
	fmt.Println(lock.Release(ctx))
	// Output:
	// true worker 1
	// true
	// <nil>
}

package rwhash_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/rwhash"
)

// expiry returns the earliest and the latest time at which a key expires: the server may pause around
// PTTL. PEXPIRETIME is of Redis 7.0.
const expiry = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local before, left = now(), redis.call('PTTL', KEYS[1])
return {before + left, now() + left}`

// slow is a driver whose scripts take 200 ms after each HGETALL, as for very many fields. With
// lapses, the hold with the latest end has only 100 ms left when a script begins.
type slow struct {
	driver.Driver
	lapses bool
}

func (s slow) Eval(ctx context.Context, script *driver.Script, keys, args []string) (driver.Reply, error) {
	source := fmt.Sprintf(`
local fast, takes = redis, 0.2
if %v then
  local time, last = fast.call('TIME'), fast.call('HGET', KEYS[1], 'last')
  local rest = string.match(fast.call('HGET', KEYS[1], last), ' .*')
  local till = time[1] * 1000 + math.floor(time[2] / 1000) + takes * 500
  fast.call('HSET', KEYS[1], last, string.format('%%.0f', till) .. rest)
end
local timed, clock = pcall(function() return os.clock end) -- newer servers have it; there TIME stands still in a script
if not timed then clock = function() local t = fast.call('TIME') return t[1] + t[2] / 1000000 end end
local redis = {pcall = fast.pcall, call = function(name, ...)
  local reply = fast.call(name, ...)
  local till = clock() + takes
  while name == 'HGETALL' and clock() < till do end
  return reply
end}
`, s.lapses) + script.Source()
	return s.Driver.Eval(ctx, driver.NewScript(source), keys, args)
}

// A slow refusal of a writer affects neither the lease of the reader with the lock, nor a key of
// another kind put in place of the lock meanwhile.
func TestSlowRefusal(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	drv := clients.All[0].Open(t, server.Addr())
	readers := locker.Must(rwhash.New(drv, rwhash.Config{}))
	for what, lapses := range map[string]bool{"the lease lasts": false, "the lease ends meanwhile": true} {
		lock := locker.Must(readers.Acquire(t.Context(), locker.Request{Name: what, Mode: locker.Shared, TTL: time.Minute}))
		server.MustCommand(t, "HSET", what, "rough", 0) // as after many holds
		writers := locker.Must(rwhash.New(slow{drv, lapses}, rwhash.Config{AttemptTimeout: time.Minute}))
		match(t, check.ErrOf(writers.Acquire(t.Context(), locker.Request{Name: what})), locker.ErrNotAcquired)
		if !lapses {
			token := server.MustCommand(t, "HGET", what, "last")
			var ends int64
			match(t, check.ErrOf(fmt.Sscan(fmt.Sprint(server.MustCommand(t, "HGET", what, token)), &ends)))
			var from, to int64
			match(t, check.ErrOf(fmt.Sscanf(fmt.Sprint(server.MustCommand(t, "EVAL", expiry, 1, what)), "[%d %d]", &from, &to)))
			if ends < from-1 || ends > to+1 { // each is rounded to milliseconds
				t.Errorf("%s: until %d, and the key until %d to %d", what, ends, from, to)
			}
			match(t, lock.Release(t.Context()))
		}
		match(t, check.ErrOf(readers.Acquire(t.Context(), locker.Request{Name: what, Mode: locker.Shared})))
	}
}

package conformance

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// The sound algorithms: each passes the cases failed by its mutants.
var (
	oneKey = algorithm{acquire: luaStringAcquire, renew: luaStringRenew, release: luaStringRelease}
	fields = algorithm{acquire: luaFieldsAcquire, renew: luaFieldsRenew, release: luaFieldsRelease}
)

// The flawed algorithms, those of the literature first, and the cases for their flaws.
func TestMutants(t *testing.T) {
	t.Parallel()
	m := mutants{T: t}
	flaw := func(name string, sound algorithm, mutate func(*algorithm), caught ...string) {
		var can Capabilities
		if sound.acquire == luaFieldsAcquire {
			can = Capabilities{Shared: true, Reentrant: true, Hash: true}
		}
		flawed := sound
		mutate(&flawed)
		m.add(name, flawed.harness(can), sound.harness(can), caught...)
	}
	flaw("SETNX, then EXPIRE", oneKey, func(a *algorithm) { a.take = takeInTwoCommands },
		"an acquire never leaves a key without an expiry", "an acquire is one command")
	flaw("DEL without comparing", oneKey, func(a *algorithm) { a.release = luaDelete },
		"the next holder is left alone", "the stored value is compared whole",
		"the clean-up leaves the next holder alone")
	flaw("GETSET with the clocks of clients", oneKey,
		func(a *algorithm) { a.take, a.release = takeByClientClock, luaDelete }, "a foreign value is no clock",
		"one holder at a time", "the next holder is left alone")
	flaw("a read key and a write key", fields,
		func(a *algorithm) {
			a.acquire, a.renew, a.release = luaTwoKeysAcquire, luaTwoKeysRenew, luaTwoKeysRelease
		},
		"a reader releases its own hold", "a reader's lease is its own",
		"a shared acquire whose reply is lost counts once")
	flaw("one field for all readers", fields,
		lua("local mine, ", "if ARGV[3] == 'shared' then ARGV[1] = 'readers' end\nlocal mine, "),
		"a reader releases its own hold", "a reader's lease is its own")
	flaw("a release that ends all holds", fields, lua("'HDEL', KEYS[1], ARGV[1])\nredis", "'DEL', KEYS[1])\nredis"),
		"an owner enters again", "a reader releases its own hold")
	flaw("a counter for re-entry", fields,
		func(a *algorithm) {
			a.acquire, a.renew, a.release = luaCounterAcquire, luaCounterRenew, luaCounterRelease
		},
		"a re-entry whose reply is lost counts once", "a release whose reply is lost ends one hold")
	flaw("tokens compared by prefix", oneKey,
		lua("redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end\nif ARGV[7]",
			"string.sub(redis.call('GET', KEYS[1]) or '', 1, #ARGV[1]) ~= ARGV[1] then return 0 end\nif ARGV[7]"),
		"the stored value is compared whole")
	flaw("one expiry for all readers: the key's", fields, lua("if till <= now then", "if false then"),
		"a reader's lease is its own")
	flaw("the key expires with the last to come", fields, lua("math.max(last, till) - now", "till - now"),
		"a reader's lease is its own", "a shorter re-entry never shrinks the lease")
	flaw("readers that exclude each other", fields, lua("readers and ARGV[3] == 'exclusive'", "readers"),
		"readers hold at once", "shared waiters enter together")
	flaw("an acquire that looks at nothing", oneKey,
		lua("if held then return {0, redis.call('PTTL', KEYS[1]), held} end", ""), "one holder at a time",
		"one winner among many", "a foreign holder contends", "processes that wait exclude each other",
		"Do holds the lock while it works")
	flaw("the owner for a token", oneKey, func(a *algorithm) {
		a.token = func(req locker.Request) string {
			if req.Owner == "" {
				return lease.NewToken()
			}
			return req.Owner
		}
	}, "an owner alone is refused", "every hold has a token of its own")
	flaw("no answer taken for contention", oneKey, func(a *algorithm) { a.outageIsHeld, a.onceOnly = true, true },
		"an outage is not contention", "an acquire whose reply is lost succeeds",
		"a refused acquire has a known outcome")
	flaw("nothing sent again", oneKey, func(a *algorithm) { a.onceOnly = true },
		"an acquire whose reply is lost succeeds", "an acquire that never arrived succeeds",
		"a release whose reply is lost succeeds", "a release that never arrived succeeds",
		"a renewal whose reply is lost succeeds", "a contended acquire whose reply is lost is refused")
	flaw("an acquire sent again with another token", oneKey, func(a *algorithm) {
		a.take = func(ctx context.Context, h *mutableHold) (driver.Reply, error) {
			h.token = lease.NewToken()
			h.args[0] = h.token
			return h.eval(ctx, h.alg.acquire, h.ttl)
		}
	}, "an acquire whose reply is lost succeeds")
	flaw("a lease that counts from the last send", oneKey, func(a *algorithm) { a.fromLast = true },
		"an acquire whose reply is lost succeeds")
	flaw("a cancelled acquire left to itself", oneKey, func(a *algorithm) { a.noCleanUp = true },
		"a cancelled acquire that runs late leaves no key", "an acquire cancelled at any instant leaves no key")
	flaw("what was not sent counts as unknown", oneKey, func(a *algorithm) { a.doubts = true },
		"an acquire that was never sent has a known outcome")
	flaw("the cause of a context taken for an outcome", oneKey, func(a *algorithm) { a.rawCause = true },
		"the error of another acquire is not taken for the outcome")
	flaw("a clean-up that looks once", oneKey, func(a *algorithm) { a.cleanUpOnce = true },
		"a cancelled acquire that runs late leaves no key")
	flaw("a clean-up that Close does not wait for", oneKey, func(a *algorithm) { a.ignoresClosing = true },
		"close waits for the clean-up")
	flaw("a renewal that revives", oneKey, func(a *algorithm) { a.renew = luaRevive }, "renew never revives",
		"the next holder is left alone", "a lost lock stays lost")
	flaw("a renewal that shortens", oneKey,
		lua("if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2]) then", "if true then"), "renew never shortens")
	flaw("a renewal that only compares", oneKey,
		func(a *algorithm) { a.renew = `return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0` }, "renew extends")
	flaw("a release that ignores its outcome", oneKey, func(a *algorithm) { a.carelessly, a.onceOnly = true, true },
		"a release that never arrived succeeds", "a release from a frozen server is bounded",
		"Do distinguishes an unknown release from a loss")
	flaw("a release that obeys a cancelled context", oneKey, func(a *algorithm) { a.obedient = true },
		"a cancelled context does not stop a release")
	flaw("a release that tells nobody", oneKey, lua("redis.call('PUBLISH', ARGV[6], '')", ""),
		"a release is published", "a release wakes a waiter", "the clean-up wakes waiters")
	flaw("a lock that leaves a key", oneKey,
		lua("redis.call('SET', KEYS[1], ARGV[1]",
			"redis.call('SET', KEYS[1] .. ':last', ARGV[1], 'PX', ARGV[2]) redis.call('SET', KEYS[1], ARGV[1]"),
		"one winner among many", "the next holder is left alone")
	flaw("fencing tokens that only count", oneKey, lua("mint(by_clock)", "mint(by_count)"),
		"fencing tokens outlive their counter")
	flaw("a fencing token for the refused", oneKey, lua("local held = ", "mint(by_clock)\nlocal held = "),
		"a refused acquire mints nothing")
	flaw("the time in seconds for a fencing token", oneKey,
		lua("mint(by_clock)", "mint(function() return redis.call('TIME')[1] * 1000000 end)"),
		"fencing tokens increase", "a counter ahead of the clock keeps counting")
	flaw("fencing tokens without their last digits", oneKey, lua("'%.0f', next", "'%.15g', next"),
		"a counter ahead of the clock keeps counting")
	m.convict()
}

// lua replaces sound by flawed in every script that contains it.
func lua(sound, flawed string) func(*algorithm) {
	return func(a *algorithm) {
		before := *a
		for _, script := range []*string{&a.acquire, &a.renew, &a.release} {
			*script = strings.Replace(*script, sound, flawed, 1)
		}
		if a.acquire+a.renew+a.release == before.acquire+before.renew+before.release {
			panic("no script has " + sound)
		}
	}
}

// takeInTwoCommands is the oldest way: between the two commands the holder may die.
func takeInTwoCommands(ctx context.Context, h *mutableHold) (driver.Reply, error) {
	reply, err := h.eval(ctx, luaSetNX, h.ttl)
	if won, _ := reply.Int(0); err != nil || won == 0 {
		return reply, err
	}
	_, err = h.eval(ctx, luaExpire, h.ttl)
	return reply, err
}

// takeByClientClock stores the end of the holder's lease by the holder's clock, and takes a lease
// that ended more than a second ago by its own. The result of GETSET decides between two
// simultaneous takers.
func takeByClientClock(ctx context.Context, h *mutableHold) (driver.Reply, error) {
	const tolerance = time.Second
	now := time.Now().Add(h.skew)
	h.token = strconv.FormatInt(now.Add(h.ttl).UnixMilli(), 10)
	h.args[0] = h.token
	reply, err := h.eval(ctx, luaSetNX, h.ttl)
	if won, _ := reply.Int(0); err != nil || won == 1 {
		return reply, err
	}
	found, err := h.eval(ctx, `return redis.call('GET', KEYS[1])`, h.ttl)
	if err != nil {
		return reply, err
	}
	till, err := strconv.ParseInt(text(found, 0), 10, 64)
	if err != nil || now.Add(-tolerance).UnixMilli() <= till {
		return reply, nil //nolint:nilerr // not a number: not a lease of ours
	}
	before, err := h.eval(ctx, luaGetSet, h.ttl)
	if err != nil || text(before, 0) != text(found, 0) {
		return reply, err
	}
	return driver.NewReply([]any{int64(1), "0"})
}

// harness runs cases on an algorithm. The clock of each second Locker is an hour ahead.
func (a algorithm) harness(caps Capabilities) *Harness {
	var n atomic.Int32
	return &Harness{Dial: plain, Can: caps, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
		m := &mutable{drv: drv, alg: a, attempt: bound.Attempt}
		if n.Add(1)%2 == 0 {
			m.skew = time.Hour
		}
		return m, nil
	}}
}

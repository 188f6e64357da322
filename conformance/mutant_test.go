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

// The sound algorithms: what a mutant fails, the one that it was made of passes.
var (
	oneKey = algorithm{acquire: luaStringAcquire, renew: luaStringRenew, release: luaStringRelease}
	fields = algorithm{acquire: luaFieldsAcquire, renew: luaFieldsRenew, release: luaFieldsRelease}
)

// flawedAlgorithms are the flawed algorithms, those of the literature first, and the cases that
// must catch them.
var flawedAlgorithms = []struct {
	name   string
	sound  algorithm
	mutate func(*algorithm)
	caught []string
}{
	{
		"SETNX, then EXPIRE", oneKey,
		func(a *algorithm) { a.take = takeInTwoCommands },
		[]string{"an acquire never leaves a key without an expiry", "an acquire is one command"},
	},
	{
		"DEL without comparing", oneKey,
		func(a *algorithm) { a.release = luaDelete },
		[]string{
			"the next holder is left alone", "the stored value is compared whole", "the clean-up leaves the next holder alone",
		},
	},
	{
		"GETSET with the clocks of clients", oneKey,
		func(a *algorithm) { a.take, a.release = takeByClientClock, luaDelete },
		[]string{"a foreign value is no clock", "one holder at a time", "the next holder is left alone"},
	},
	{
		"a read key and a write key", fields,
		func(a *algorithm) {
			a.acquire, a.renew, a.release = luaTwoKeysAcquire, luaTwoKeysRenew, luaTwoKeysRelease
		},
		[]string{"a reader releases its own hold", "a reader's lease is its own", "a shared acquire whose reply is lost counts once"},
	},
	{
		"one field for all readers", fields,
		func(a *algorithm) {
			a.acquire, a.renew, a.release = luaOneFieldAcquire, luaOneFieldRenew, luaOneFieldRelease
		},
		[]string{"a reader releases its own hold", "a reader's lease is its own"},
	},
	{
		"a release that ends all holds", fields,
		func(a *algorithm) {
			a.release = strings.Replace(luaFieldsRelease, "'HDEL', KEYS[1], ARGV[1])\nredis", "'DEL', KEYS[1])\nredis", 1)
		},
		[]string{"an owner enters again", "a reader releases its own hold"},
	},
	{
		"a counter for re-entry", fields,
		func(a *algorithm) {
			a.acquire, a.renew, a.release = luaCounterAcquire, luaCounterRenew, luaCounterRelease
		},
		[]string{"a re-entry whose reply is lost counts once", "a release whose reply is lost ends one hold"},
	},
	{
		"tokens compared by prefix", oneKey,
		func(a *algorithm) { a.release = luaByPrefix },
		[]string{"the stored value is compared whole"},
	},

	{
		"one expiry for all readers: the key's", fields,
		func(a *algorithm) { a.fields("if till <= now then", "if false then") },
		[]string{"a reader's lease is its own"},
	},
	{
		"the key expires with the last to come", fields,
		func(a *algorithm) { a.fields("math.max(last, till) - now", "till - now") },
		[]string{"a reader's lease is its own", "a shorter re-entry never shrinks the lease"},
	},
	{
		"readers that exclude each other", fields,
		func(a *algorithm) {
			a.acquire = strings.Replace(luaFieldsAcquire, "readers and ARGV[3] == 'exclusive'", "readers", 1)
		},
		[]string{"readers hold at once", "shared waiters enter together"},
	},
	{
		"an acquire that looks at nothing", oneKey,
		func(a *algorithm) { a.acquire = luaSteals },
		[]string{
			"one holder at a time", "one winner among many", "a foreign holder contends",
			"processes that wait exclude each other", "Do holds the lock while it works",
		},
	},
	{
		"the owner for a token", oneKey,
		func(a *algorithm) {
			a.token = func(req locker.Request) string {
				if req.Owner == "" {
					return lease.NewToken()
				}
				return req.Owner
			}
		},
		[]string{"an owner alone is refused", "every hold has a token of its own"},
	},
	{
		"no answer taken for contention", oneKey,
		func(a *algorithm) { a.outageIsHeld, a.onceOnly = true, true },
		[]string{"an outage is not contention", "an acquire whose reply is lost succeeds", "a refused acquire has a known outcome"},
	},
	{
		"nothing sent again", oneKey,
		func(a *algorithm) { a.onceOnly = true },
		[]string{
			"an acquire whose reply is lost succeeds", "an acquire that never arrived succeeds", "a release whose reply is lost succeeds",
			"a release that never arrived succeeds", "a renewal whose reply is lost succeeds",
			"a contended acquire whose reply is lost is refused",
		},
	},
	{
		"an acquire sent again with another token", oneKey,
		func(a *algorithm) {
			a.take = func(ctx context.Context, h *mutableHold) (driver.Reply, error) {
				h.token = lease.NewToken()
				h.args[0] = h.token
				return h.eval(ctx, h.alg.acquire, h.ttl)
			}
		},
		[]string{"an acquire whose reply is lost succeeds"},
	},
	{
		"a lease that counts from the answer", oneKey,
		func(a *algorithm) { a.fromReply = true },
		[]string{"a slow reply is waited for", "an acquire whose reply is lost succeeds"},
	},
	{
		"a lease that counts from the last send", oneKey,
		func(a *algorithm) { a.fromLast = true },
		[]string{"an acquire whose reply is lost succeeds"},
	},
	{
		"a lock without a Deadline", oneKey,
		func(a *algorithm) { a.endless = true },
		[]string{
			"Done closes with the server frozen", "a lease ends by itself", "a lock past its Deadline is lost",
			"Do ends its work with the lease",
		},
	},
	{
		"a cancelled acquire left to itself", oneKey,
		func(a *algorithm) { a.noCleanUp = true },
		[]string{"a cancelled acquire that runs late leaves no key", "an acquire cancelled at any instant leaves no key"},
	},
	{
		"what was not sent counts as unknown", oneKey,
		func(a *algorithm) { a.doubts = true },
		[]string{"an acquire that was never sent has a known outcome"},
	},
	{
		"the cause of a context taken for an outcome", oneKey,
		func(a *algorithm) { a.rawCause = true },
		[]string{"the error of another acquire is not taken for the outcome"},
	},
	{
		"a clean-up that looks once", oneKey,
		func(a *algorithm) { a.cleanUpOnce = true },
		[]string{"a cancelled acquire that runs late leaves no key"},
	},
	{
		"a clean-up that Close does not wait for", oneKey,
		func(a *algorithm) { a.ignoresClosing = true },
		[]string{"close waits for the clean-up"},
	},
	{
		"a renewal that revives", oneKey,
		func(a *algorithm) { a.renew = luaRevive },
		[]string{"renew never revives", "the next holder is left alone", "a lost lock stays lost"},
	},
	{
		"a renewal that shortens", oneKey,
		func(a *algorithm) { a.renew = luaShorten },
		[]string{"renew never shortens"},
	},
	{
		"a renewal that only compares", oneKey,
		func(a *algorithm) { a.renew = `return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0` },
		[]string{"renew extends"},
	},
	{
		"a release that ignores its outcome", oneKey,
		func(a *algorithm) { a.carelessly, a.onceOnly = true, true },
		[]string{"a release that never arrived succeeds", "a release from a frozen server is bounded", "Do distinguishes an unknown release from a loss"},
	},
	{
		"a release that obeys a cancelled context", oneKey,
		func(a *algorithm) { a.obedient = true },
		[]string{"a cancelled context does not stop a release"},
	},
	{
		"a release that tells nobody", oneKey,
		func(a *algorithm) { a.release = luaSilently },
		[]string{"a release is published", "a release wakes a waiter", "the clean-up wakes waiters"},
	},
	{
		"a give-back that wakes", oneKey,
		func(a *algorithm) { a.aloud = true },
		[]string{"an undone acquire wakes nobody"},
	},
	{
		"a lock that leaves a key", oneKey,
		func(a *algorithm) { a.acquire = luaLogs },
		[]string{"one winner among many", "the next holder is left alone"},
	},
	{
		"fencing tokens that only count", oneKey,
		func(a *algorithm) { a.acquire = luaCounted },
		[]string{"fencing tokens outlive their counter"},
	},
	{
		"a fencing token for the refused", oneKey,
		func(a *algorithm) { a.acquire = luaMintsAlways },
		[]string{"a refused acquire mints nothing"},
	},
	{
		"the time in seconds for a fencing token", oneKey,
		func(a *algorithm) {
			by := "mint(function() return redis.call('TIME')[1] * 1000000 end)"
			a.acquire = strings.Replace(luaStringAcquire, "mint(by_clock)", by, 1)
		},
		[]string{"fencing tokens increase", "a counter ahead of the clock keeps counting"},
	},
	{
		"fencing tokens without their last digits", oneKey,
		func(a *algorithm) { a.acquire = strings.Replace(luaStringAcquire, "'%.0f', next", "'%.15g', next", 1) },
		[]string{"a counter ahead of the clock keeps counting"},
	},
}

// fields changes what the scripts of the sound fields have in common.
func (a *algorithm) fields(sound, flawed string) {
	for _, script := range []*string{&a.acquire, &a.renew, &a.release} {
		*script = strings.Replace(*script, sound, flawed, 1)
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

// takeByClientClock stores when the holder's lease ends, by the holder's clock, and takes what
// ended more than a second ago by its own. Two who see that at once are told apart by what GETSET
// returns.
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
		return reply, nil //nolint:nilerr // what is no number is not a lease of ours
	}
	before, err := h.eval(ctx, luaGetSet, h.ttl)
	if err != nil || text(before, 0) != text(found, 0) {
		return reply, err
	}
	return driver.NewReply([]any{int64(1), "0"})
}

// harness runs cases on an algorithm. Each second Locker has a clock that is an hour ahead.
func (a algorithm) harness(caps Capabilities) *Harness {
	var n atomic.Int32
	return &Harness{Dial: plain, Can: caps, New: func(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
		m := &mutable{drv: drv, alg: a}
		if n.Add(1)%2 == 0 {
			m.skew = time.Hour
		}
		return m, nil
	}}
}

func TestMutants(t *testing.T) {
	t.Parallel()
	var suspects []suspect
	for _, m := range flawedAlgorithms {
		var caps Capabilities
		if m.sound.acquire == luaFieldsAcquire {
			caps = Capabilities{Shared: true, Reentrant: true, Hash: true}
		}
		flawed := m.sound
		m.mutate(&flawed)
		suspects = append(suspects, suspect{m.name, flawed.harness(caps), m.sound.harness(caps), m.caught})
	}
	convict(t, suspects)
}

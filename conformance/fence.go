package conformance

import (
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

var fenceCases = []testCase{
	{
		name: "fencing tokens increase", contract: fencing, on: suite.AllKinds,
		why: "a store rejects late writes by comparing tokens, so they must only grow",
		run: tokensIncrease,
	},
	{
		name: "a refused acquire mints nothing", contract: fencing, on: suite.WithoutSentinel,
		why: "a token belongs to a tenure; waiters must not outdate the holder's",
		run: refusedMintsNothing,
	},
	{
		name: "a token is raised while the lock is held", contract: fencing, on: suite.WithoutSentinel,
		why: "a quorum's token is the highest of its nodes, and each node must continue from it; a late raise must change nothing",
		run: tokenIsRaised,
	},
	{
		name: "fencing tokens outlive their counter", contract: fencing, on: suite.WithoutSentinel, own: true,
		why: "after FLUSHALL the server's clock keeps the tokens growing",
		run: tokensOutliveFlush,
	},
	{
		name: "a counter ahead of the clock keeps counting", contract: fencing, on: suite.WithoutSentinel,
		why: "after a failover to a slower clock the counter decides, to the last digit",
		run: counterAheadCountsOn,
	},
	{
		name: "the counter outlives the lock by a day", contract: fencing, on: suite.WithoutSentinel, can: counterEnds,
		why: "the next tenure needs it, and it must not stay for ever",
		run: counterOutlivesLock,
	},
}

// counterEnds selects the strategies whose fence counter expires.
func counterEnds(c Capabilities) bool { return !c.EndlessCounter }

// counter reads the fence counter of a name.
func (t *caseT) counter(name string) int64 {
	t.Helper()
	text, _ := t.Stored(t.fenceKey(name))
	n, err := strconv.ParseInt(text, 10, 64)
	t.OK(err, "the fence counter of %.80q", name)
	return n
}

// tenure acquires a fenced lock, demands a token greater than last, and releases the lock.
func (t *caseT) tenure(l locker.Locker, name string, last int64) int64 {
	t.Helper()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	if lock.Fence() <= last {
		t.Errorf("the fencing token went from %d to %d", last, lock.Fence())
	}
	if lock.Handle().Fence() != lock.Fence() {
		t.Errorf("the Handle has the fencing token %d, the Lock %d", lock.Handle().Fence(), lock.Fence())
	}
	t.OK(lock.Release(t.Ctx), "Release")
	return lock.Fence()
}

func tokensIncrease(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	var last int64
	for range 10 {
		last = t.tenure(a, name, last)
		a, b = b, a
	}
	plain := t.acquire(a, locker.Request{Name: name, TTL: long})
	if plain.Fence() != 0 {
		t.Errorf("a lock that asked for no token has %d; want 0, so that a check by it fails closed", plain.Fence())
	}
	t.OK(plain.Release(t.Ctx), "Release")
	// An expired tenure counts as well.
	expired := t.acquire(a, locker.Request{Name: name, TTL: long, Fenced: true})
	t.Do(name, "DEL", name)
	if expired.Fence() <= last {
		t.Errorf("the fencing token went from %d to %d", last, expired.Fence())
	}
	t.tenure(b, name, expired.Fence())
}

func refusedMintsNothing(t *caseT) {
	l, name := t.direct(), t.Key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	for range 3 {
		t.contended(l, locker.Request{Name: name, TTL: long, Fenced: true})
	}
	t.OK(lock.Renew(t.Ctx, 0), "Renew")
	if n := t.counter(name); n != lock.Fence() {
		t.Errorf("the counter went from %d to %d in one tenure", lock.Fence(), n)
	}
	if lock.Fence() <= 0 {
		t.Errorf("the fencing token is %d, want one above 0", lock.Fence())
	}
	t.OK(lock.Release(t.Ctx), "Release")
}

func tokenIsRaised(t *caseT) {
	l, name := t.direct(), t.Key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
	var bare lease.Lease
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		bare = inner
		return inner
	})
	raise := func(to int64) (lease.Result, error) {
		return bare.Do(t.Ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: to})
	}
	high := lock.Fence() + time.Hour.Microseconds()
	for _, to := range []int64{high, high, lock.Fence()} { // up, again, and no way down
		result, err := raise(to)
		t.OK(err, "raise the token to %d", to)
		if result.Fence != high || t.counter(name) != high {
			t.Errorf("raised to %d, the token is %d, the counter %d; want %d", to, result.Fence, t.counter(name), high)
		}
	}
	t.OK(lock.Release(t.Ctx), "Release")
	last := t.tenure(l, name, high)
	_, err := raise(last + time.Hour.Microseconds())
	t.Is(err, locker.ErrNotHeld, "raise the token of a hold that is gone")
	if n := t.counter(name); n != last {
		t.Errorf("a late raise moved the counter from %d to %d", last, n)
	}
}

func tokensOutliveFlush(t *caseT) {
	l, name := t.direct(), t.Key()
	var last int64
	for range 3 {
		last = t.tenure(l, name, last)
		t.OK(t.Server.EveryNode(t.Ctx, "FLUSHALL"), "FLUSHALL")
	}
	t.tenure(l, name, last)
}

func counterAheadCountsOn(t *caseT) {
	l := t.direct()
	for _, ahead := range []int64{
		time.Now().Add(24 * time.Hour).UnixMicro(), 1<<53 - 1000, // near Lua's largest exact integer
	} {
		name := t.Key()
		t.Do(t.fenceKey(name), "SET", t.fenceKey(name), ahead)
		for i := range int64(3) {
			lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true})
			if want := ahead + i + 1; lock.Fence() != want {
				t.Errorf("with the counter at %d the token is %d, want %d", want-1, lock.Fence(), want)
			}
			if n := t.counter(name); n != lock.Fence() {
				t.Errorf("the token is %d, the counter %d", lock.Fence(), n)
			}
			t.OK(lock.Release(t.Ctx), "Release")
		}
	}
}

func counterOutlivesLock(t *caseT) {
	const day = 24 * time.Hour
	l, name := t.direct(), t.Key()
	for _, ttl := range []time.Duration{long, 3 * day} {
		began := time.Now()
		lock := t.acquire(l, locker.Request{Name: name, TTL: ttl, Fenced: true})
		check := func(when string, ttl time.Duration) {
			t.Left(t.PTTL(t.fenceKey(name)), ttl+day, began, "%s the counter of a lock of %v", when, ttl)
		}
		check("after Acquire", ttl)
		t.OK(lock.Renew(t.Ctx, 2*ttl), "Renew")
		check("after Renew", 2*ttl)
		t.OK(lock.Release(t.Ctx), "Release")
		if left := t.PTTL(t.fenceKey(name)); left < day-time.Since(began)-time.Second {
			t.Errorf("after Release the counter lives for %v, want at least a day", left)
		}
		t.Do(name, "DEL", t.fenceKey(name))
	}
}

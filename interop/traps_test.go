package interop

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/interop/peer"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// Each trap is a way in which a library ends or ignores a lock of ours, and what avoids it.
func TestTraps(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	type trap struct {
		kind kind
		test func(*testing.T, *pair)
	}
	redisson := kind{name: "redisson", language: "java"}
	javaLock := func(name string) kind { return kind{name: name, language: "java", strategy: "redisson"} }
	majority := kindNamed("rueidislock")
	majority.name = "rueidislock-majority"
	check.Each(t, map[string]trap{
		"redislock, a token of one character":     {kindNamed("redislock"), testShortToken},
		"redis-py, no timeout":                    {kindNamed("redis-py"), testNoTimeout},
		"python-redis-lock, reset_all":            {kindNamed("python-redis-lock"), testReset},
		"python-redis-lock, its signal":           {signalled("python-redis-lock"), testSignal},
		"PUB_SUB_LOCK, its signal":                {signalled("spring-pubsub"), testSignal},
		"rueidislock, a majority without key 0":   {majority, testMajority},
		"rueidislock, a majority against redlock": {majority, testMajorityOfOurs},
		"Redisson, another type":                  {redisson, testAnotherType},
		"Redisson, RFencedLock":                   {javaLock("redisson-fenced"), testTokens},
		"Redisson, RSpinLock":                     {javaLock("redisson-spin"), testExcluded},
		"Redisson, RFairLock":                     {javaLock("redisson-fair"), testExcluded},
		"Redisson, RReadWriteLock":                {javaLock("redisson-write"), testWriteLock},
	}, func(t *testing.T, tt trap) {
		tt.test(t, newPair(t, tt.kind, clients.All[0]))
	})
}

const trapped = "trapped"

// redislock compares the stored value with its token up to the token's length.
func testShortToken(t *testing.T, p *pair) {
	t.Helper()
	lock := p.hold(t, trapped)
	value, _ := p.command(t, "GET", trapped).(string)
	tell(t, p.theirs, peer.OK, "acquire", trapped, ttl.Milliseconds(), 0, value[:1])
	check.Is(t, lock.Release(t.Context()), locker.ErrLost)
	tell(t, p.theirs, peer.OK, "release", trapped)
	lock = p.hold(t, trapped)
	tell(t, p.theirs, peer.No, "acquire", trapped, ttl.Milliseconds(), 0, "a token of some length")
	check.OK(t, lock.Release(t.Context()))
}

// By default the key of redis-py has no end, and stays when its holder dies.
func testNoTimeout(t *testing.T, p *pair) {
	t.Helper()
	tell(t, p.theirs, peer.OK, "acquire", trapped, 0, 0)
	p.theirs.Kill()
	check.Equal(t, "PTTL", p.command(t, "PTTL", trapped), any(int64(-1)))
	if p.try(t, trapped) != nil {
		t.Fatal("both hold")
	}
	state, err := locker.Break(t.Context(), p.ours, trapped)
	check.Must(t, err)
	check.Equal(t, "the lock that Break ended was held", state.Held, true)
	check.OK(t, p.hold(t, trapped).Release(t.Context()))
}

// reset_all deletes every key that begins with "lock:".
func testReset(t *testing.T, p *pair) {
	t.Helper()
	lock := p.hold(t, trapped)
	tell(t, p.theirs, peer.OK, "reset")
	check.Is(t, lock.Release(t.Context()), locker.ErrLost)
}

// signalled is a kind with our strategy that sends its signal.
func signalled(name string) kind {
	k := kindNamed(name)
	k.strategy = k.signals
	return k
}

// A library that sleeps until its signal is woken by our release.
func testSignal(t *testing.T, p *pair) {
	t.Helper()
	acquire(t, p.theirs, peer.OK, "another") // the server then knows the script: one command is one attempt
	lock := p.sleeper(t)
	check.OK(t, lock.Release(t.Context()))
	p.woken(t)
}

// sleeper has the peer wait for our lock for longer than peer.Patience.
func (p *pair) sleeper(t *testing.T) *locker.Lock {
	t.Helper()
	lock := p.hold(t, trapped)
	p.wakes = polls // its wait is long
	p.sendAcquire(t, trapped)
	return lock
}

func (p *pair) woken(t *testing.T) {
	t.Helper()
	a := p.theirs.Answer()
	check.Equal(t, "their acquire after the wake-up "+a.Text, a.Outcome, peer.OK)
}

// Two of the three keys of rueidislock are a majority. Without key 0, which ours is, both hold.
func testMajority(t *testing.T, p *pair) {
	t.Helper()
	p.acquireAll(t)
	if p.try(t, trapped) != nil {
		t.Error("both hold")
	}
	p.command(t, "DEL", trapped)
	lock := p.hold(t, trapped)
	tell(t, p.theirs, peer.OK, "release", trapped) // it was held
	check.OK(t, lock.Release(t.Context()))
}

// acquireAll has rueidislock acquire all three keys: the third one, after its acquire has returned.
func (p *pair) acquireAll(t *testing.T) {
	t.Helper()
	acquire(t, p.theirs, peer.OK, trapped)
	check.Eventually(t, "rueidislock has its third key", func() bool {
		return p.server.MustCommand(t, "EXISTS", "rueidislock:2:"+trapped) == any(int64(1))
	})
}

// A quorum of three locks of ours excludes the majority of rueidislock, also without key 0.
func testMajorityOfOurs(t *testing.T, p *pair) {
	t.Helper()
	prefixes := []string{"rueidislock:0:", "rueidislock:1:", "rueidislock:2:"}
	drv := p.client.Open(t, p.server.Addr())
	var nodes []locker.Locker
	for _, prefix := range prefixes {
		nodes = append(nodes, locker.Must(single.New(drv, single.Config{Prefix: prefix})))
	}
	quorum := locker.Must(redlock.New(nodes, redlock.Config{}))
	ours := locker.Must(holdfast.Wrap(quorum, holdfast.Config{}))
	req := locker.Request{Name: trapped, TTL: ttl, NoWait: true}

	lock := locker.Must(ours.Acquire(t.Context(), req))
	p.server.MustCommand(t, "DEL", prefixes[0]+trapped)
	acquire(t, p.theirs, peer.No, trapped)
	check.OK(t, lock.Release(t.Context()))

	p.acquireAll(t)
	p.server.MustCommand(t, "DEL", prefixes[0]+trapped)
	check.Is(t, check.ErrOf(ours.Acquire(t.Context(), req)), locker.ErrNotAcquired)
	tell(t, p.theirs, peer.OK, "release", trapped)
}

// Redisson keeps a hash: the one refuses the other's key by WRONGTYPE, and nobody waits.
func testAnotherType(t *testing.T, p *pair) {
	t.Helper()
	lock := p.hold(t, trapped)
	a := p.theirs.Do("acquire", trapped, ttl.Milliseconds(), long.Milliseconds())
	check.Equal(t, "their acquire", a.Outcome, peer.Error)
	check.Contains(t, "their error", a.Text, "WRONGTYPE")
	check.OK(t, lock.Release(t.Context()))

	acquire(t, p.theirs, peer.OK, trapped)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	_, err := p.ours.Acquire(ctx, locker.Request{Name: trapped, TTL: ttl})
	check.Equal(t, "our error is a refusal", errors.Is(err, locker.ErrNotAcquired), false)
	if err == nil {
		t.Fatal("both hold")
	}
	t.Logf("our error: %v", err)
	tell(t, p.theirs, peer.OK, "release", trapped)
}

func testExcluded(t *testing.T, p *pair) {
	t.Helper()
	p.testExcluded(t)
}

// The tokens of RFencedLock and of our fenced holds increase in turn.
func testTokens(t *testing.T, p *pair) {
	t.Helper()
	theirs := int64(0)
	for range 3 {
		lock := locker.Must(p.bare.Acquire(t.Context(), locker.Request{Name: trapped, TTL: ttl, Fenced: true}))
		check.AtLeast(t, "our token", lock.Fence(), theirs+1)
		acquire(t, p.theirs, peer.No, trapped)
		check.OK(t, lock.Release(t.Context()))

		acquire(t, p.theirs, peer.OK, trapped)
		text, _ := p.server.MustCommand(t, "GET", "redisson_lock_token:{"+trapped+"}").(string)
		theirs = locker.Must(strconv.ParseInt(text, 10, 64))
		check.AtLeast(t, "their token", theirs, lock.Fence()+1)
		if p.try(t, trapped) != nil {
			t.Fatal("both hold")
		}
		tell(t, p.theirs, peer.OK, "release", trapped)
	}
}

// The write lock of Redisson enters beside a plain lock, so beside ours. We refuse its hash, and a
// release of ours leaves it alone.
func testWriteLock(t *testing.T, p *pair) {
	t.Helper()
	lock := p.hold(t, trapped)
	acquire(t, p.theirs, peer.OK, trapped)
	check.OK(t, lock.Release(t.Context()))
	_, err := p.bare.Acquire(t.Context(), locker.Request{Name: trapped, TTL: ttl})
	if err == nil {
		t.Fatal("both hold")
	}
	check.Equal(t, "our error is a refusal", errors.Is(err, locker.ErrNotAcquired), false)
	check.Contains(t, "our error", err.Error(), "RReadWriteLock")
	tell(t, p.theirs, peer.OK, "release", trapped)
	check.OK(t, p.hold(t, trapped).Release(t.Context()))
}

package interop

import (
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/clients"
	"github.com/holdfast-go/holdfast/internal/effort"
	"github.com/holdfast-go/holdfast/interop/gopeer"
	"github.com/holdfast-go/holdfast/interop/peer"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Every library and Holdfast over go-redis exclude each other, and neither ends a hold of the other.
func TestPeers(t *testing.T) {
	t.Parallel()
	effort.NeedFull(t)
	rows := newRows()
	t.Cleanup(func() { rows.compare(t) })
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, k, clients.All[0])
			row := row{kind: k}
			t.Run("excluded", p.testExcluded)
			t.Run("wait", p.testWait)
			t.Run("renew", p.testRenew)
			t.Run("death", p.testDeath)
			t.Run("late", p.testLate)
			t.Run("hammer", func(t *testing.T) { row.tally = p.hammer(t, 0) })
			if k.strategy == "" {
				k.strategy = k.hearing()
				p = newPair(t, k, clients.All[0])
				t.Run("keyspace", p.testKeyspace)
				t.Run("hammer with keyspace", func(t *testing.T) { row.heard = p.hammer(t, 0) })
			}
			if k.isWoken() {
				t.Run("hammer with pauses", func(t *testing.T) { row.paused = p.hammer(t, time.Millisecond) })
			}
			if !t.Failed() {
				rows.add(row)
			}
		})
	}
}

// testExcluded: who does not hold the lock is refused.
func (p *pair) testExcluded(t *testing.T) {
	const name = "excluded"
	lock := p.hold(t, name)
	acquire(t, p.theirs, peer.No, name)
	check.OK(t, lock.Release(t.Context()))
	acquire(t, p.theirs, peer.OK, name)
	if p.try(t, name) != nil {
		t.Error("both hold")
	}
	if p.looks != "" {
		script := strategyOf(t) + "return strategy_of(KEYS[1])"
		check.Equal(t, "the program takes it for", p.server.MustCommand(t, "EVAL", script, 1, p.prefix+name), any(p.looks))
	}
	tell(t, p.theirs, peer.OK, "release", name)
	check.OK(t, p.hold(t, name).Release(t.Context()))
}

// testKeyspace: the server announces their release where our waiter listens.
func (p *pair) testKeyspace(t *testing.T) {
	const name = "keyspace"
	channel := gopeer.Keyspace + p.prefix + name
	received := p.receive(t, "SUBSCRIBE", channel)
	acquire(t, p.theirs, peer.OK, name)
	got := p.await(t, name)
	check.Eventually(t, "our waiter listens", func() bool {
		receivers, _ := p.server.MustCommand(t, "PUBSUB", "NUMSUB", channel).([]any)
		return len(receivers) == 2 && receivers[1] == any(int64(2))
	})
	tell(t, p.theirs, peer.OK, "release", name)
	r := <-got
	check.Must(t, r.err)
	announced := false // after changes of the TTL
	for !announced {
		announced = reflect.DeepEqual(received(), []any{"message", channel, "del"})
	}
	check.OK(t, r.lock.Release(t.Context()))
}

// strategyOf is the function of the program that recognizes locks.
func strategyOf(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("../cmd/holdfast/lua/strategy.lua")
	check.Must(t, err)
	return string(source)
}

// testWait: who waits gets the lock after its release.
func (p *pair) testWait(t *testing.T) {
	const name = "wait"
	lock := p.hold(t, name)
	p.sendAcquire(t, name)
	check.OK(t, lock.Release(t.Context()))
	a := p.theirs.Answer()
	check.Equal(t, "their acquire after our release "+a.Text, a.Outcome, peer.OK)
	if p.wakes == sleeps {
		check.AtLeast(t, "the sleep of who is not woken", a.End.Sub(a.Begin), short-time.Second)
	}
	ours := p.ours
	if p.wakes == wakes { // nothing but their message wakes us
		ours = locker.Must(retry.New(retry.Config{Policy: func() backoff.BackOff { return backoff.NewConstantBackOff(long) }}))(p.bare)
	}
	got := awaitBy(t, ours, name)
	tell(t, p.theirs, peer.OK, "release", name)
	r := <-got
	check.Must(t, r.err)
	check.OK(t, r.lock.Release(t.Context()))
}

// testRenew: a renewed hold keeps the other out past its first end.
func (p *pair) testRenew(t *testing.T) {
	const name = "renew"
	const soon = 30 * time.Second // the first end, as if most of the TTL had passed
	renewed := func() bool {
		left, _ := p.command(t, "PTTL", name).(int64)
		return left > soon.Milliseconds()
	}
	lock := p.hold(t, name)
	p.command(t, "PEXPIRE", name, soon.Milliseconds())
	check.Must(t, lock.Renew(t.Context(), 0))
	check.Equal(t, "ours lasts beyond its first end", renewed(), true)
	acquire(t, p.theirs, peer.No, name)
	check.OK(t, lock.Release(t.Context()))

	acquire(t, p.theirs, peer.OK, name)
	p.command(t, "PEXPIRE", name, soon.Milliseconds())
	if p.renewsItself {
		check.Eventually(t, "theirs lasts beyond its first end", renewed)
	} else {
		tell(t, p.theirs, peer.OK, "renew", name, ttl.Milliseconds())
		check.Equal(t, "theirs lasts beyond its first end", renewed(), true)
	}
	if p.try(t, name) != nil {
		t.Error("both hold")
	}
	tell(t, p.theirs, peer.OK, "release", name)
}

// testDeath: who waits gets the lock of a killed holder when its lease ends, and not before.
func (p *pair) testDeath(t *testing.T) {
	const name = "death"
	const rest = 500 * time.Millisecond // of the lease of the dead, from a PEXPIRE
	const rounding = 5 * time.Millisecond
	holder := p.start(t, p.server.Addr())
	acquire(t, holder, peer.OK, name)
	holder.Kill()
	got := p.await(t, name)
	begin := time.Now()
	p.command(t, "PEXPIRE", name, rest.Milliseconds())
	r := <-got
	check.Must(t, r.err)
	check.AtLeast(t, "we waited for the end of the lease", r.at.Sub(begin), rest-rounding)
	check.OK(t, r.lock.Release(t.Context()))

	holder = p.startOurs(t, p.client.Name, p.server.Addr())
	acquire(t, holder, peer.OK, name)
	holder.Kill()
	expire := func() {
		begin = time.Now()
		p.command(t, "PEXPIRE", name, rest.Milliseconds())
	}
	if p.wakes == wakes { // its refusal says when the lease ends
		expire()
		p.theirs.Send("acquire", name, ttl.Milliseconds(), p.wait().Milliseconds())
	} else {
		p.sendAcquire(t, name)
		expire()
	}
	a := p.theirs.Answer()
	check.Equal(t, "their acquire after the lease's end "+a.Text, a.Outcome, peer.OK)
	check.AtLeast(t, "they waited for the end of the lease", a.End.Sub(begin), rest-rounding)
	tell(t, p.theirs, peer.OK, "release", name)
}

// testLate: who renews or releases after the end of its lease leaves the next holder's key alone.
func (p *pair) testLate(t *testing.T) {
	const name = "late"
	acquire(t, p.theirs, peer.OK, name)
	p.command(t, "DEL", name)
	lock := p.hold(t, name)
	before := p.command(t, "DUMP", name)
	var theirs []peer.Answer
	if !p.renewsItself {
		theirs = append(theirs, p.theirs.Do("renew", name, ttl.Milliseconds()))
	}
	theirs = append(theirs, p.theirs.Do("release", name))
	untouched := p.command(t, "DUMP", name) == before
	check.Equal(t, "they leave our lock alone", untouched, !p.steals)
	if p.steals {
		check.Is(t, lock.Release(t.Context()), locker.ErrLost)
	} else {
		for _, a := range theirs {
			t.Logf("a late call: %s %s", a.Outcome, a.Text)
		}
		check.OK(t, lock.Release(t.Context()))
	}

	lock = p.hold(t, name)
	p.command(t, "DEL", name)
	acquire(t, p.theirs, peer.OK, name)
	before = p.command(t, "DUMP", name)
	check.Is(t, lock.Release(t.Context()), locker.ErrLost)
	check.Equal(t, "we leave their lock alone", p.command(t, "DUMP", name) == before, true)
	tell(t, p.theirs, peer.OK, "release", name)
}

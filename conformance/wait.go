package conformance

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var waitCases = []testCase{
	{
		name: "a release is published", contract: 12, on: suite.AllKinds, needs: subscribes,
		why: "a waiter in another process learns of the release only there",
		run: releaseIsPublished,
	},
	{
		name: "an undone acquire wakes nobody", contract: 12, on: suite.OneAddress,
		why: "the failed attempts of quorums would wake each other, which makes the next ones fail, without end",
		run: undoIsQuiet,
	},
	{
		name: "a release that may not publish still releases", contract: 12, on: suite.OnlySingle, own: true,
		why: "wake-ups are hints: a user without the right to publish must not be left with a lock that cannot be released",
		run: unpublishedReleaseReleases,
	},
	{
		name: "a release wakes a waiter", contract: 12, on: suite.AllKinds, needs: subscribes,
		why: "without a wake-up a waiter would sit until the end of the lease or the next poll",
		run: releaseWakesWaiter,
	},
	{
		name: "a release wakes a waiter that has waited for long", contract: 12, on: suite.OnlyMemory, needs: subscribes,
		why: "a waiter that polls rarely must not be forgotten by the server while it waits",
		run: releaseWakesOldWaiter,
	},
	{
		name: "a release before the subscription is not missed", contract: 12, on: suite.OneAddress, needs: subscribes,
		why: "a message between the refusal and the subscription is missed, so the waiter must try again after subscribing",
		run: releaseBeforeSubscription,
	},
	{
		name: "the end of a lease wakes a waiter", contract: 12, on: suite.OnlyMemory,
		why: "a holder that dies publishes nothing",
		run: leaseEndWakesWaiter,
	},
	{
		name: "a foreign release is found by polling", contract: 12, on: suite.WithoutSentinel, can: stringKey,
		why: "foreign libraries delete their key and publish nothing",
		run: foreignReleaseIsFound,
	},
	{
		name: "a user who may not subscribe polls", contract: 12, on: suite.OnlySingle, own: true,
		why: "a user without the right to the channel must still get the lock",
		run: deafWaiterPolls,
	},
	{
		name: "many waiters send one attempt at a time", contract: 13, on: suite.WithoutSentinel,
		why: "if every waiter polled the server, the load would grow with the queue",
		run: manyWaitersSendOne,
	},
	{
		name: "waiters of one process queue in order", contract: 13, on: suite.WithoutSentinel,
		why: "first come, first served: no goroutine starves behind later ones",
		run: waitersQueueInOrder,
	},
	{
		name: "a waiter that gives up passes its turn on", contract: 13, on: suite.WithoutSentinel, needs: subscribes,
		why: "those behind it send nothing while it is at the head, and would wait for ever",
		run: leaverPassesItsTurnOn,
	},
	{
		name: "processes that wait exclude each other", contract: 13, on: suite.AllKinds,
		why: "what they do under the lock must not overlap, and their tokens must grow",
		run: processesExcludeEachOther,
	},
	{
		name: "a waiter gives up when its time is over", contract: 13, on: suite.OnlyMemory,
		why: "MaxWait and ctx bound the waiting; the error says that the lock is held, and nothing stays behind",
		run: waiterGivesUp,
	},
	{
		name: "a waiter that gave up keeps nobody out", contract: 12, on: suite.WithoutSentinel, needs: subscribes,
		why: "a lock would be refused although nobody is in the way, for as long as the server counts a waiter that has gone",
		run: leaverKeepsNobodyOut,
	},
}

func releaseIsPublished(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(a, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		ce := t.contendedFor(b, locker.Request{Name: lock.Name()})
		sub, err := ce.Channel.Subscribe(t.Ctx)
		t.OK(err, "subscribe to the channel of releases")
		defer sub.Close()
		t.Do(lock.Name(), "PING")
		suite.Drain(sub)
		t.OK(lock.Release(t.Ctx), "Release")
		t.Woken(sub, "Release")
	}
}

// undoIsQuiet undoes one hold, and releases the next one. The undo publishes nothing though
// somebody waits. A strategy may lack the undo; then it returns errors.ErrUnsupported and leaves
// the hold alone.
func undoIsQuiet(t *caseT) {
	l, name := t.direct(), t.Key()
	sub := t.listenAt(t.Server.Target.Addrs[0], t.wakeChannel(name))
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
		t.contended(l, locker.Request{Name: name})
		var err error
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
			_, err = inner.Do(t.Ctx, lease.Op{Kind: lease.OpUndo})
			return inner
		})
		if errors.Is(err, errors.ErrUnsupported) {
			t.OK(lock.Release(t.Ctx), "Release after a give-back that is not supported")
			continue
		}
		t.OK(err, "OpUndo")
		t.gone(name, "after it was undone")
		if n := sub.count(); n != 0 {
			t.Errorf("an undone hold was published %d times", n)
		}
		t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release of an undone hold")
		sub.count() // it may wake waiters: the lock is free
	}
	lock := t.acquire(l, locker.Request{Name: name, TTL: long})
	_ = t.contendedFor(l, locker.Request{Name: name})
	t.OK(lock.Release(t.Ctx), "Release")
	if n := sub.count(); n == 0 {
		t.Errorf("a release was not published")
	}
}

func unpublishedReleaseReleases(t *caseT) {
	for user, rules := range map[string][]any{
		"mute": {"~*", "&*", "+@all", "-publish"},
		"deaf": {"~*", "resetchannels", "+@all"},
	} {
		l := t.locker(t.Dial(t.User(user, rules...)))
		for _, fenced := range []bool{false, true} {
			lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
			t.OK(lock.Renew(t.Ctx, 0), "Renew as user %s", user)
			t.contended(l, locker.Request{Name: lock.Name()}) // a waiter to be woken
			t.OK(lock.Release(t.Ctx), "Release as user %s", user)
			t.gone(lock.Name(), "after Release as user %s", user)
		}
	}
}

func subscribed(info locktrace.WaitingInfo) bool { return info.Subscribed }

// settled matches a wait after the subscription, if there is one: a message or a poll ends it.
func (t *caseT) settled(info locktrace.WaitingInfo) bool {
	return info.Subscribed || t.Lacks(suite.FeatureSubscribe)
}

func waits(locktrace.WaitingInfo) bool { return true }

func releaseWakesWaiter(t *caseT) {
	name := t.Key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	for range 3 {
		waiter := t.waiting(t.direct(), retry.Config{Policy: never})
		got := t.waitAs(waiter, locker.Request{Name: name, TTL: long}, subscribed)
		t.OK(lock.Release(t.Ctx), "Release")
		lock = t.got(got, "after a release, with the lease far from its end")
	}
	t.OK(lock.Release(t.Ctx), "Release")
}

func releaseWakesOldWaiter(t *caseT) {
	modes := []locker.Mode{locker.Exclusive}
	if t.h.Can.Shared {
		modes = append(modes, locker.Shared)
	}
	for _, mode := range modes {
		name := t.Key()
		lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
		waiter := t.waiting(t.direct(), retry.Config{Policy: never})
		got := t.waitAs(waiter, locker.Request{Name: name, TTL: long, Mode: mode}, subscribed)
		t.Pause(15 * time.Second)
		released := time.Now()
		t.OK(lock.Release(t.Ctx), "Release")
		next := t.got(got, "after 15 s and a release")
		if took := time.Since(released); took > 20*latency {
			t.Errorf("a %v waiter got the lock %v after its release", mode, took)
		}
		t.OK(next.Release(t.Ctx), "Release")
	}
}

func releaseBeforeSubscription(t *caseT) {
	p, l := t.behind()
	waiter := t.waiting(l, retry.Config{Policy: never})
	name := t.Key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("SUBSCRIBE", name), Fault: faultproxy.StallRequest})
	got := t.wait(waiter, locker.Request{Name: name, TTL: long})
	t.Event(trap.Hit(), "the subscription is held back")
	t.OK(lock.Release(t.Ctx), "Release")
	trap.Release()
	next := t.got(got, "after a release before the subscription")
	t.OK(next.Release(t.Ctx), "Release")
}

func leaseEndWakesWaiter(t *caseT) {
	waiter := t.waiting(t.direct(), retry.Config{Policy: never})
	name := t.Key()
	dead := t.acquireExpiring(locker.Request{Name: name, TTL: brief})
	got := t.wait(waiter, locker.Request{Name: name, TTL: long})
	next := t.got(got, "after the end of the lease")
	if early := time.Until(dead.Deadline()); early > 0 {
		t.Errorf("the waiter got the lock %v before the Deadline of its holder", early)
	}
	t.OK(next.Release(t.Ctx), "Release")
}

func foreignReleaseIsFound(t *caseT) {
	waiter := t.waiting(t.direct(), retry.Config{})
	name := t.Key()
	t.Do(name, "SET", name, "theirs", "PX", long.Milliseconds())
	got := t.waitAs(waiter, locker.Request{Name: name, TTL: long}, t.settled)
	t.Do(name, "DEL", name)
	t.OK(t.got(got, "after a foreign DEL").Release(t.Ctx), "Release")

	t.Do(name, "SET", name, "theirs, without an end")
	got = t.waitAs(waiter, locker.Request{Name: name, TTL: long}, t.settled)
	t.Do(name, "DEL", name)
	t.OK(t.got(got, "after the DEL of a key without an end").Release(t.Ctx), "Release")
}

func deafWaiterPolls(t *caseT) {
	waiter := t.waiting(t.locker(t.Dial(t.User("deaf", "~*", "resetchannels", "+@all"))), retry.Config{})
	lock := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	got := t.wait(waiter, locker.Request{Name: lock.Name(), TTL: long})
	t.OK(lock.Release(t.Ctx), "Release")
	t.OK(t.got(got, "of a user who may not subscribe").Release(t.Ctx), "Release")
}

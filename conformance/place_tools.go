package conformance

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// timeToTry is how long a free lock is kept for a woken waiter (docs/contracts.md).
const timeToTry = 500 * time.Millisecond

// place is a waiter without attempts of its own: the test asks for each.
type place struct {
	t       *caseT
	drv     driver.Driver
	l       locker.Locker
	name    string
	permits int
	waiting lease.Waiting
	channel driver.Channel
	sub     driver.Subscription
}

// hasPlaces reports whether waiters for a held lock have places at the server.
func (t *caseT) hasPlaces(name string) bool {
	t.Helper()
	return t.contended(t.direct(), locker.Request{Name: name, NoWait: true}).Queue
}

// places puts n waiters with subscriptions in front of a held lock: the first has waited longest,
// and came last.
func (t *caseT) places(name string, n int) []*place {
	t.Helper()
	return t.placesOf(name, t.locker, make([]int, n))
}

// placesOf is places for Lockers of newLocker, one for each number of permits.
func (t *caseT) placesOf(name string, newLocker func(driver.Driver) locker.Locker, permits []int) []*place {
	t.Helper()
	n := len(permits)
	list := make([]*place, n)
	for i := n - 1; i >= 0; i-- {
		drv := t.Driver()
		p := &place{t: t, drv: drv, l: newLocker(drv), name: name, permits: permits[i]}
		p.waiting = lease.Waiting{ID: lease.NewToken(), Since: time.Now().Add(time.Duration(i-n) * time.Minute)}
		lock, held := p.try()
		if lock != nil {
			t.Fatalf("a waiter acquired a lock that another holds")
		}
		p.channel = held.Channel.For(p.waiting.ID)
		var err error
		p.sub, err = p.channel.Subscribe(t.Ctx)
		t.OK(err, "subscribe to the channel of a waiter")
		t.Cleanup(func() { _ = p.sub.Close() })
		p.waiting.Subscribed = true
		p.refused()
		p.stay()
		suite.Drain(p.sub)
		list[i] = p
	}
	return list
}

// stay makes the place count for a minute from now on a real server: the five seconds of
// docs/contracts.md may pass between two commands of a busy machine. It changes the score in
// package keylock's queue (strategies/keylock/lua/queue.lua), 4 for each millisecond.
func (p *place) stay() {
	t := p.t
	t.Helper()
	if t.InFakeTime() {
		return
	}
	queue, _ := sibling.Waiters(p.name)
	for _, command := range [][]any{
		{"ZADD", queue, "XX", "INCR", 4 * 55_000, "~" + p.waiting.ID}, {"PEXPIRE", queue, 60_000},
	} {
		_, err := t.Server.Do(t.Ctx, queue, command...) // not t.Do: the case still leaves no such key
		t.OK(err, "%v", command[0])
	}
}

// try makes an attempt. It returns the lock or the refusal.
func (p *place) try() (*locker.Lock, *locker.ContentionError) {
	p.t.Helper()
	lock, err := p.l.Acquire(lease.WithWaiting(p.t.Ctx, p.waiting),
		locker.Request{Name: p.name, TTL: long, Permits: p.permits})
	var ce *locker.ContentionError
	if err != nil && !errors.As(err, &ce) {
		p.t.Fatalf("an attempt of a waiter: %v", err)
	}
	if err == nil {
		p.t.releaseLater(lock)
	}
	return lock, ce
}

// refused makes an attempt that must be refused: the waiter counts from now on.
func (p *place) refused() {
	p.t.Helper()
	if lock, _ := p.try(); lock != nil {
		p.t.Fatalf("a waiter acquired a lock that another holds")
	}
}

// acquired makes an attempt that must succeed.
func (p *place) acquired() *locker.Lock {
	p.t.Helper()
	lock, ce := p.try()
	if lock == nil {
		p.t.Fatalf("a waiter whose turn it is was refused: %v", ce)
	}
	return lock
}

// isDroppedWhenDead reports whether a release learns of a missing subscription.
func (p *place) isDroppedWhenDead() bool {
	return p.drv.Delivery(p.channel.Name()) != driver.DeliveryPlain
}

// listenersOf returns how many connections are subscribed to a channel, by SSUBSCRIBE too.
func (t *caseT) listenersOf(c driver.Channel) int64 {
	t.Helper()
	n := t.Listeners(c.Name())
	if t.Server.Cluster != nil {
		pair, _ := t.Do(c.Name(), "PUBSUB", "SHARDNUMSUB", c.Name()).([]any)
		sharded, _ := pair[len(pair)-1].(int64)
		n += sharded
	}
	return n
}

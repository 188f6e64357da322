package conformance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// placeCases are about the places of waiters at the server. A strategy without them passes most of
// these cases by doing nothing: its refusals say so (lease.Hint.Queue).
var placeCases = []testCase{
	{
		name: "a full server refuses those who wait too", contract: 12, on: suite.OnlySingle, own: true,
		why: "a script that first removes the waiter's place may write beyond maxmemory",
		run: fullServerRefusesWaiters,
	},
	{
		name: "a release wakes the first waiter alone", contract: 12, on: suite.WithoutSentinel, needs: subscribes,
		why: "if every process were woken, all but one would try in vain, and the load of a release would grow with their number",
		run: releaseWakesFirstAlone,
	},
	{
		name: "nobody waits and nobody is told", contract: 12, on: suite.WithoutSentinel,
		why: "a message that nobody waits for costs each release, and each node of a cluster, for nothing",
		run: nobodyIsTold,
	},
	{
		name: "Inspect counts the waiters", contract: 12, on: suite.WithoutSentinel, needs: subscribes,
		why: "people ask how many wait before they end a hold, or give a server more of them",
		run: inspectCountsWaiters,
	},
	{
		name: "a dead waiter passes the wake-up on", contract: 12, on: suite.WithoutSentinel, needs: subscribes,
		why: "a wake-up that is sent to a process that has died would leave the lock free, and all others waiting",
		run: deadWaiterPassesOn,
	},
	{
		name: "a frozen waiter delays the next one only", contract: 12, on: suite.OnlyMemory, needs: subscribes,
		why: "a process that listens but does not try would keep a free lock from all others",
		run: frozenWaiterPassesOn,
	},
	{
		name: "a deaf waiter does not stall others", contract: 12, on: suite.OnlyMemory, needs: subscribes,
		why: "a process whose messages get lost while its commands work would be woken in vain again and again, and nobody would use the lock meanwhile",
		run: deafStallsNobody,
	},
	{
		name: "a woken waiter goes before other waiters", contract: 12, on: suite.OnlyMemory, needs: subscribes,
		why: "a waiter that polls at the wrong moment would take the lock from the one that has waited longest, time and again",
		run: wokenGoesFirst,
	},
	{
		name: "a fair lock is first come, first served", contract: 12, on: suite.OnlyMemory, needs: subscribes,
		can: fair,
		why: "a process would starve behind others that came later",
		run: fairIsInOrder,
	},
	{
		name: "nobody passes the waiters of a fair lock", contract: 12, on: suite.OnlyMemory, needs: subscribes,
		can: fair,
		why: "a newcomer, or another library that finds the key free, would take the lock from the one that was woken",
		run: nobodyPassesFairWaiters,
	},
	{
		name: "foreign libraries contend beside the queue", contract: 2, on: suite.WithoutSentinel, can: stringKey,
		why: "redsync, redislock and redis-py know nothing of the queue, and must neither hold the lock beside a waiter nor stop it",
		run: foreignersContend,
	},
	{
		name: "waiters outlive the move of a slot", contract: 12, on: suite.OnlyCluster, own: true,
		why: "while the keys of the lock and of its queue are on two nodes, a script with both is refused, and the lock must still be released",
		run: slotMovesAmongWaiters,
	},
}

func releaseWakesFirstAlone(t *caseT) {
	held := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	if !t.hasPlaces(held.Name()) {
		return
	}
	waiters := t.places(held.Name(), 3)
	var channels []string
	for _, p := range waiters {
		channels = append(channels, p.channel.Name())
	}
	heard := t.listenFor(held.Name(), append(channels, t.wakeChannel(held.Name()))...)
	for i, p := range waiters {
		for _, p := range slices.Backward(waiters[i:]) {
			p.refused()
		}
		t.OK(held.Release(t.Ctx), "Release")
		t.Woken(p.sub, "the first waiter")
		if got := heard.messages(); len(got) != 1 || got[0] != channels[i] {
			t.Errorf("release %d published on %q, want %q, of the one that has waited longest", i, got, channels[i])
		}
		held = p.acquired()
	}
	t.OK(held.Release(t.Ctx), "Release")
	if got := heard.messages(); len(got) != 0 {
		t.Errorf("the release behind the last waiter published on %q", got)
	}
}

func nobodyIsTold(t *caseT) {
	l, name := t.direct(), t.Key()
	held := t.acquire(l, locker.Request{Name: name, TTL: long})
	places := t.hasPlaces(name)
	t.OK(held.Release(t.Ctx), "Release")
	if !places {
		return
	}
	heard := t.listenFor(name, t.wakeChannel(name))
	for range 3 {
		for _, fenced := range []bool{false, true} {
			lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
			t.contended(t.direct(), locker.Request{Name: name, NoWait: true})
			t.OK(lock.Renew(t.Ctx, 0), "Renew")
			t.OK(lock.Release(t.Ctx), "Release")
		}
	}
	if got := heard.messages(); len(got) != 0 {
		t.Errorf("for nobody messages were published on %q", got)
	}
}

func inspectCountsWaiters(t *caseT) {
	l := t.direct()
	in, ok := lease.Find[locker.Inspector](unwrap(l))
	if !ok {
		t.Fatalf("%T is no locker.Inspector", l)
	}
	held := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	if !t.hasPlaces(held.Name()) { // it asks without waiting
		return
	}
	waiters := t.places(held.Name(), 3)
	counts := func(want int) {
		t.Helper()
		var last locker.State
		t.Eventually("the server counts the waiters", func() bool {
			for _, p := range waiters[len(waiters)-want:] {
				p.refused() // its few seconds may have passed
			}
			var err error
			last, err = in.Inspect(t.Ctx, held.Name())
			t.OK(err, "Inspect")
			if last.Waiters > want {
				t.Fatalf("%d waiters are counted, want %d", last.Waiters, want)
			}
			return last.Waiters == want
		})
	}
	for i, p := range waiters {
		counts(len(waiters) - i)
		t.OK(held.Release(t.Ctx), "Release")
		held = p.acquired()
	}
	counts(0)
	t.OK(held.Release(t.Ctx), "Release")
}

func deadWaiterPassesOn(t *caseT) {
	held := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	if !t.hasPlaces(held.Name()) {
		return
	}
	waiters := t.places(held.Name(), 3)
	if !waiters[0].isDroppedWhenDead() {
		return // it delays the next one, as a frozen one does
	}
	last := waiters[2]
	for _, p := range waiters[:2] {
		t.OK(p.sub.Close(), "close the subscription")
	}
	t.Eventually("nobody listens for the first waiters", func() bool {
		return t.listenersOf(waiters[0].channel)+t.listenersOf(waiters[1].channel) == 0
	})
	last.refused()
	suite.Drain(last.sub)
	t.OK(held.Release(t.Ctx), "Release")
	t.Woken(last.sub, "behind two waiters that are dead")
	t.OK(last.acquired().Release(t.Ctx), "Release")
}

// frozenWaiterPassesOn lasts until the next attempt of a waiter that was not woken.
func frozenWaiterPassesOn(t *caseT) {
	held := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	if !t.hasPlaces(held.Name()) {
		return
	}
	frozen := t.places(held.Name(), 1)[0]
	got := t.waitAs(t.waiting(t.direct(), retry.Config{}), locker.Request{Name: held.Name(), TTL: long}, subscribed)
	t.OK(held.Release(t.Ctx), "Release")
	released := time.Now()
	t.Woken(frozen.sub, "the first waiter")
	next := t.got(got, "behind a waiter that is frozen")
	if took := time.Since(released); took > 5*time.Second {
		t.Errorf("a waiter that is frozen kept a free lock from the next one for %v", took)
	}
	frozen.refused() // it wakes up, too late, and polls
	t.OK(next.Release(t.Ctx), "Release")
	t.OK(frozen.acquired().Release(t.Ctx), "Release")
}

// deafDriver loses the messages of its subscriptions. The server counts it as a receiver.
type deafDriver struct{ driver.Driver }

func (d deafDriver) Subscribe(ctx context.Context, channel string) (driver.Subscription, error) {
	sub, err := d.Driver.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	return deafSubscription{sub}, nil
}

type deafSubscription struct{ driver.Subscription }

func (deafSubscription) Wake() <-chan struct{} { return make(chan struct{}) }

// deafStallsNobody has two processes acquire in turn beside others woken in vain. Each of the
// others may delay them by the time to try, once.
func deafStallsNobody(t *caseT) {
	const (
		deaf   = 2
		during = 8 * time.Second
		hold   = 50 * time.Millisecond
	)
	name := t.Key()
	held := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	if !t.hasPlaces(name) {
		return
	}
	ctx, stop := context.WithCancel(t.Ctx)
	defer stop()
	var wg sync.WaitGroup
	var used atomic.Int64 // holding time of healthy processes
	var polled atomic.Int32
	work := func(l locker.Locker, use func(time.Duration)) {
		err := locker.Do(ctx, l, locker.Request{Name: name, TTL: long}, func(context.Context, *locker.Lock) error {
			t.Pause(hold)
			use(hold)
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("Do: %v", err)
		}
	}
	for range deaf {
		l := t.waiting(t.locker(deafDriver{t.Driver()}), retry.Config{})
		wg.Go(func() {
			for ctx.Err() == nil {
				work(l, func(time.Duration) { polled.Add(1) })
			}
		})
		t.Pause(100 * time.Millisecond) // it waits first
	}
	began := time.Now()
	for range 2 {
		l := t.waiting(t.direct(), retry.Config{})
		wg.Go(func() {
			for time.Since(began) < during {
				work(l, func(d time.Duration) { used.Add(int64(d)) })
			}
		})
	}
	t.OK(held.Release(t.Ctx), "Release")
	t.Pause(during)
	if least := during*9/10 - deaf*timeToTry; time.Duration(used.Load()) < least {
		t.Errorf("beside deaf waiters the others had the lock for %v of %v, want %v", time.Duration(used.Load()), during, least)
	}
	polled.Store(0)
	t.Pause(2 * time.Second)
	if polled.Load() == 0 {
		t.Errorf("nobody else waits, and a deaf waiter does not get the lock")
	}
	stop()
	wg.Wait()
}

func wokenGoesFirst(t *caseT) {
	held := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	if !t.hasPlaces(held.Name()) {
		return
	}
	waiters := t.places(held.Name(), 2)
	t.OK(held.Release(t.Ctx), "Release")
	t.Woken(waiters[0].sub, "the first waiter")
	t.Pause(timeToTry - 10*latency)
	lock, refusal := waiters[1].try()
	if lock != nil {
		t.Fatalf("a waiter acquired a lock that is kept for another")
	}
	if again := refusal.RetryAfter; again <= 0 || again > 12*latency {
		t.Errorf("a waiter is to try again in %v; the lock is kept for another for 10 ms more", again)
	}
	if t.h.Can.Fair {
		t.contended(t.direct(), locker.Request{Name: held.Name(), NoWait: true})
	}
	held = waiters[0].acquired()
	waiters[1].refused()
	t.OK(held.Release(t.Ctx), "Release")
	t.Woken(waiters[1].sub, "the other waiter")
	t.OK(waiters[1].acquired().Release(t.Ctx), "Release")
}

func fairIsInOrder(t *caseT) {
	order := []int{0, 0, 1, 0, 2, 1} // the processes of the waiters
	held := t.acquire(t.direct(), locker.Request{Name: t.Key(), TTL: long})
	turns := make(chan int, len(order))
	processes := map[int]locker.Locker{}
	var waiters []<-chan *locker.Lock
	for i, process := range order {
		t.Pause(100 * time.Millisecond) // the server computes since when they wait
		match := waits                  // behind the waiter with a place
		l := processes[process]
		if l == nil {
			l, match = t.waiting(t.direct(), retry.Config{}), subscribed
			processes[process] = l
		}
		waiters = append(waiters,
			t.waitAs(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
				lock, err := l.Acquire(ctx, req)
				if err == nil {
					turns <- i
					_, newcomer := t.direct().Acquire(ctx, locker.Request{Name: req.Name, NoWait: true})
					if !errors.Is(newcomer, locker.ErrNotAcquired) {
						t.Errorf("a newcomer beside waiter %d: %v", i, newcomer)
					}
					err = lock.Release(ctx)
				}
				return lock, err
			}), locker.Request{Name: held.Name(), TTL: long}, match))
	}
	t.OK(held.Release(t.Ctx), "Release")
	for _, ch := range waiters {
		t.got(ch, "of a fair lock")
	}
	for i := range order {
		if next := <-turns; next != i {
			t.Errorf("turn %d is that of waiter %d, which came in another place", i, next)
		}
	}
}

func nobodyPassesFairWaiters(t *caseT) {
	name := t.Key()
	held := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	waiters := t.places(name, 2)
	newcomer := t.direct()
	t.OK(held.Release(t.Ctx), "Release")
	t.Pause(timeToTry - 10*latency)
	if !t.h.Can.Hash && t.Do(name, "SET", name, "theirs", "PX", long.Milliseconds(), "NX") != nil {
		t.Fatalf("SET NX took a fair lock from the one that was woken")
	}
	t.contended(newcomer, locker.Request{Name: name, NoWait: true})
	held = waiters[0].acquired()
	t.OK(held.Release(t.Ctx), "Release")
	t.Woken(waiters[1].sub, "the second waiter")
	t.OK(waiters[1].acquired().Release(t.Ctx), "Release")
}

// redislockValue is a value of bsm/redislock: the base64 of 16 bytes.
const redislockValue = "MDEyMzQ1Njc4OWFiY2RlZg"

const luaCompareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// foreignersContend has processes of ours and others lock the same key.
func foreignersContend(t *caseT) {
	const rounds = 4
	name := t.Key()
	var wg sync.WaitGroup
	var inside atomic.Int32
	work := func(d time.Duration) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d are inside at once", n)
		}
		t.Pause(d)
		inside.Add(-1)
	}
	for range 2 {
		l := t.waiting(t.direct(), retry.Config{})
		for range 2 {
			wg.Go(func() {
				for range rounds {
					err := locker.Do(t.Ctx, l, locker.Request{Name: name, TTL: long},
						func(context.Context, *locker.Lock) error {
							work(0)
							return nil
						})
					if err != nil {
						t.Errorf("Do: %v", err)
					}
				}
			})
		}
	}
	wg.Go(func() {
		for range rounds {
			t.Eventually("SET NX takes the key", func() bool {
				return t.Do(name, "SET", name, redislockValue, "PX", long.Milliseconds(), "NX") != nil
			})
			work(20 * time.Millisecond) // the waiters try meanwhile
			if n := t.Do(name, "EVAL", luaCompareAndDelete, 1, name, redislockValue); n != int64(1) {
				t.Errorf("compare-and-delete of a key that was taken by SET NX deleted %v keys", n)
			}
		}
	})
	wg.Wait()
	t.gone(name, "after the last release")
}

func slotMovesAmongWaiters(t *caseT) {
	name := t.Key()
	held := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	l := t.waiting(t.direct(), retry.Config{})
	got := t.wait(l, locker.Request{Name: name, TTL: long})
	cluster := t.Server.Cluster
	home := cluster.NodeForKey(name)
	to := cluster.Nodes()[0]
	if to == home {
		to = cluster.Nodes()[1]
	}
	move, err := cluster.BeginMove(t.Ctx, redistest.Slot(name), to)
	t.OK(err, "begin to move the slot")
	t.OK(move.Migrate(t.Ctx, name), "move the key of the lock")
	t.OK(held.Release(t.Ctx), "Release with the keys on two nodes")
	next := t.got(got, "while the slot moves")
	t.OK(move.Finish(t.Ctx), "move the rest of the slot")
	t.OK(next.Release(t.Ctx), "Release after the slot has moved")
	t.free(l, name)
}

// fullServerRefusesWaiters fills the memory, as far as the server knows, while a waiter has a place.
func fullServerRefusesWaiters(t *caseT) {
	for _, fenced := range []bool{false, true} {
		name := t.Key()
		t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
		l := t.direct()
		t.warmLocker(l)
		ctx := lease.WithWaiting(t.Ctx, lease.Waiting{ID: lease.NewToken(), Since: time.Now()})
		requests := map[string]struct {
			ctx context.Context
			req locker.Request
		}{
			"NoWait":   {t.Ctx, locker.Request{Name: name, TTL: long, NoWait: true, Fenced: fenced}},
			"a waiter": {ctx, locker.Request{Name: name, TTL: long, Fenced: fenced}},
		}
		for what, r := range requests {
			_, err := l.Acquire(r.ctx, r.req)
			t.Is(err, locker.ErrNotAcquired, "%s, of a lock that another holds", what)
		}
		t.Do(name, "DEL", name)
		t.Do(name, "CONFIG", "SET", "maxmemory", 1)
		for what, r := range requests {
			if _, err := l.Acquire(r.ctx, r.req); driver.CodeOf(err) != "OOM" {
				t.Errorf("%s, with the memory full: %v, want OOM", what, err)
			}
			t.gone(name, "after %s with the memory full", what)
		}
		t.Do(name, "CONFIG", "SET", "maxmemory", 0)
		lock, err := l.Acquire(ctx, requests["a waiter"].req)
		t.OK(err, "an acquire that waits, with memory again")
		t.OK(lock.Release(t.Ctx), "Release")
	}
	if t.h.Can.Shared {
		t.fullServerRefusesWaitingReader()
	}
}

// fullServerRefusesWaitingReader is about a waiting reader, after its writer has expired.
func (t *caseT) fullServerRefusesWaitingReader() {
	t.Helper()
	name, l := t.Key(), t.direct()
	t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	ctx := lease.WithWaiting(t.Ctx, lease.Waiting{ID: lease.NewToken(), Since: time.Now()})
	_, err := l.Acquire(ctx, reader(name))
	t.Is(err, locker.ErrNotAcquired, "a reader beside a writer")
	t.Do(name, "PEXPIRE", name, 1)
	t.Pause(10 * time.Millisecond) // the script finds the key expired, and so frees memory
	t.Do(name, "CONFIG", "SET", "maxmemory", 1)
	if _, err := l.Acquire(ctx, reader(name)); driver.CodeOf(err) != "OOM" {
		t.Errorf("a reader that waits, with the memory full: %v, want OOM", err)
	}
	t.Do(name, "CONFIG", "SET", "maxmemory", 0)
	lock, err := l.Acquire(ctx, reader(name))
	t.OK(err, "a reader that waits, with memory again")
	t.OK(lock.Release(t.Ctx), "Release")
}

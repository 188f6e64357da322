package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var waitCases = []testCase{
	{
		name: "a release is published", contract: 12, on: anywhere, needs: subscribes,
		why: "a waiter in another process hears of it there, and of nothing else in time",
		run: releaseIsPublished,
	},
	{
		name: "what is given back wakes nobody", contract: 12, on: proxied,
		why: "attempts of a quorum that come to nothing would wake those that spoil them again, without end",
		run: giveBackIsQuiet,
	},
	{
		name: "a release that may not publish still releases", contract: 12, on: realOne, own: true,
		why: "wake-ups are hints: a user without the right to publish must not be left with a lock that cannot be released",
		run: unpublishedReleaseReleases,
	},
	{
		name: "a release wakes a waiter", contract: 12, on: anywhere, needs: subscribes,
		why: "without a wake-up a waiter would sit until the end of the lease or the next poll",
		run: releaseWakesWaiter,
	},
	{
		name: "a release before the subscription is not missed", contract: 12, on: proxied, needs: subscribes,
		why: "between the refusal and the subscription the message goes unheard, so the waiter must try again after it",
		run: releaseBeforeSubscription,
	},
	{
		name: "the end of a lease wakes a waiter", contract: 12, on: everywhere,
		why: "a holder that dies publishes nothing",
		run: leaseEndWakesWaiter,
	},
	{
		name: "a foreign release is found by polling", contract: 12, on: everywhere, can: stringKey,
		why: "foreign libraries delete their key and tell nobody",
		run: foreignReleaseIsFound,
	},
	{
		name: "who may not subscribe polls", contract: 12, on: realOne, own: true,
		why: "a user without the right to the channel must still get the lock",
		run: deafWaiterPolls,
	},
	{
		name: "many waiters send one attempt at a time", contract: 13, on: everywhere,
		why: "64 goroutines that all ask the server again and again are a load that grows with the queue",
		run: manyWaitersSendOne,
	},
	{
		name: "waiters of one process queue in order", contract: 13, on: everywhere,
		why: "first come, first served: no goroutine starves behind later ones",
		run: waitersQueueInOrder,
	},
	{
		name: "a waiter that gives up passes its turn on", contract: 13, on: everywhere,
		why: "those behind it send nothing while it is at the head, and would wait for nobody",
		run: leaverPassesItsTurnOn,
	},
	{
		name: "processes that wait exclude each other", contract: 13, on: anywhere,
		why: "that is what it is all for: what each does under the lock must not overlap, and its tokens must grow",
		run: processesExcludeEachOther,
	},
	{
		name: "a waiter gives up in time", contract: 13, on: everywhere,
		why: "MaxWait and ctx bound the waiting; the error says that the lock is held, and nothing stays behind",
		run: waiterGivesUp,
	},
}

// never is a policy that leaves waiters to wake-ups and the end of the lease.
func never() backoff.BackOff { return backoff.NewConstantBackOff(time.Hour) }

// waiting puts middleware/retry around a Locker.
func (t *caseT) waiting(l locker.Locker, cfg retry.Config) locker.Locker {
	t.Helper()
	mw, err := retry.New(cfg)
	t.ok(err, "retry.New")
	if _, isDressed := l.(dressed); !isDressed {
		return mw(l)
	}
	return t.dress(mw(undress(l)))
}

// wait acquires in the background, and returns when it waits for the holder; then where the lock arrives.
func (t *caseT) wait(l locker.Locker, req locker.Request) <-chan *locker.Lock {
	t.Helper()
	return t.waitAs(l, req, func(locker.WaitingInfo) bool { return true })
}

// waitAs is wait that returns when a wait that matches has begun.
func (t *caseT) waitAs(l locker.Locker, req locker.Request, match func(locker.WaitingInfo) bool) <-chan *locker.Lock {
	t.Helper()
	waiting, got := make(chan struct{}, 1), make(chan *locker.Lock, 1)
	ctx := locker.WithTrace(t.ctx, &locker.Trace{Waiting: func(_ context.Context, info locker.WaitingInfo) {
		if match(info) {
			select {
			case waiting <- struct{}{}:
			default:
			}
		}
	}})
	go func() {
		lock, err := l.Acquire(ctx, req)
		if err != nil {
			t.Errorf("Acquire that waits: %v", err)
		}
		got <- lock
	}()
	t.event(waiting, "the waiter waits")
	return got
}

// got waits for what wait promised.
func (t *caseT) got(ch <-chan *locker.Lock, what string) *locker.Lock {
	t.Helper()
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	select {
	case lock := <-ch:
		if lock == nil {
			t.Fatalf("%s: the waiter did not get the lock", what)
		}
		return lock
	case <-timer.C:
		t.Fatalf("%s: the waiter has no lock after %v", what, t.patience)
		return nil
	}
}

func releaseIsPublished(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(a, locker.Request{Name: t.key(), TTL: long, Fenced: fenced})
		ce := t.contended(b, locker.Request{Name: lock.Name()})
		sub, err := ce.Channel.Subscribe(t.ctx)
		t.ok(err, "subscribe to the channel of releases")
		defer sub.Close()
		t.do(lock.Name(), "PING")
		drain(sub)
		t.ok(lock.Release(t.ctx), "Release")
		t.woken(sub, "Release")
	}
}

// giveBackIsQuiet ends one hold quietly and the next one aloud. A strategy may do without the quiet end; then it says so, and
// leaves the hold alone.
func giveBackIsQuiet(t *caseT) {
	l, name := t.direct(), t.key()
	ear := t.listenAt(t.srv.target.Addrs[0], name)
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
		var err error
		locker.WrapLease(lock, func(inner locker.Lease) locker.Lease {
			_, err = inner.Do(t.ctx, locker.Op{Kind: locker.OpGiveBack})
			return inner
		})
		if errors.Is(err, errors.ErrUnsupported) {
			t.ok(lock.Release(t.ctx), "Release after a give-back that is not supported")
			continue
		}
		t.ok(err, "OpGiveBack")
		if t.exists(name) {
			t.Errorf("the key is still there after it was given back")
		}
		if n := ear.heard(); n != 0 {
			t.Errorf("what was given back was published %d times", n)
		}
		t.is(lock.Release(t.ctx), locker.ErrLost, "Release of what was given back")
	}
	t.free(l, name)
	if n := ear.heard(); n == 0 {
		t.Errorf("a release was not published")
	}
}

func unpublishedReleaseReleases(t *caseT) {
	t.do("", "ACL", "SETUSER", "mute", "on", ">secret", "~*", "&*", "+@all", "-publish")
	t.do("", "ACL", "SETUSER", "deaf", "on", ">secret", "~*", "resetchannels", "+@all")
	for _, user := range []string{"mute", "deaf"} {
		target := t.srv.target
		target.Username, target.Password = user, "secret"
		l := t.locker(t.dial(target))
		for _, fenced := range []bool{false, true} {
			lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: fenced})
			t.ok(lock.Renew(t.ctx, 0), "Renew as user %s", user)
			t.ok(lock.Release(t.ctx), "Release as user %s", user)
			if t.exists(lock.Name()) {
				t.Errorf("user %s: the key is still there after Release", user)
			}
		}
	}
}

func subscribed(info locker.WaitingInfo) bool { return info.Subscribed }

func releaseWakesWaiter(t *caseT) {
	name := t.key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	for range 3 {
		waiter := t.waiting(t.direct(), retry.Config{Policy: never})
		got := t.waitAs(waiter, locker.Request{Name: name, TTL: long}, subscribed)
		t.ok(lock.Release(t.ctx), "Release")
		lock = t.got(got, "after a release, with the lease far from its end")
	}
	t.ok(lock.Release(t.ctx), "Release")
}

func releaseBeforeSubscription(t *caseT) {
	p, l := t.behind()
	waiter := t.waiting(l, retry.Config{Policy: never})
	name := t.key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Command("SUBSCRIBE", name), Fault: faultproxy.StallRequest})
	got := t.wait(waiter, locker.Request{Name: name, TTL: long})
	t.event(trap.Hit(), "the subscription is held back")
	t.ok(lock.Release(t.ctx), "Release")
	trap.Release()
	next := t.got(got, "after a release before the subscription")
	t.ok(next.Release(t.ctx), "Release")
}

func leaseEndWakesWaiter(t *caseT) {
	waiter := t.waiting(t.direct(), retry.Config{Policy: never})
	name := t.key()
	dead := t.lapsing(locker.Request{Name: name, TTL: brief})
	got := t.wait(waiter, locker.Request{Name: name, TTL: long})
	next := t.got(got, "after the end of the lease")
	if early := time.Until(dead.Deadline()); early > 0 {
		t.Errorf("the waiter got the lock %v before the Deadline of its holder", early)
	}
	t.ok(next.Release(t.ctx), "Release")
}

func foreignReleaseIsFound(t *caseT) {
	waiter := t.waiting(t.direct(), retry.Config{})
	name := t.key()
	t.do(name, "SET", name, "theirs", "PX", long.Milliseconds())
	got := t.wait(waiter, locker.Request{Name: name, TTL: long})
	t.do(name, "DEL", name)
	t.ok(t.got(got, "after a foreign DEL").Release(t.ctx), "Release")

	t.do(name, "SET", name, "theirs, without an end")
	got = t.wait(waiter, locker.Request{Name: name, TTL: long})
	t.do(name, "DEL", name)
	t.ok(t.got(got, "after the DEL of a key without an end").Release(t.ctx), "Release")
}

func deafWaiterPolls(t *caseT) {
	t.do("", "ACL", "SETUSER", "deaf", "on", ">secret", "~*", "resetchannels", "+@all")
	target := t.srv.target
	target.Username, target.Password = "deaf", "secret"
	waiter := t.waiting(t.locker(t.dial(target)), retry.Config{})
	lock := t.acquire(t.direct(), locker.Request{Name: t.key(), TTL: long})
	got := t.wait(waiter, locker.Request{Name: lock.Name(), TTL: long})
	t.ok(lock.Release(t.ctx), "Release")
	t.ok(t.got(got, "of a user who may not subscribe").Release(t.ctx), "Release")
}

func manyWaitersSendOne(t *caseT) {
	var flying, tooMany atomic.Int32
	inner := t.direct()
	counted := locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
		n := flying.Add(1)
		defer flying.Add(-1)
		if n > 1 {
			tooMany.Store(n)
		}
		return inner.Acquire(ctx, req)
	})
	l, name := t.waiting(counted, retry.Config{}), t.key()
	var wg sync.WaitGroup
	entered := 0 // by one at a time: the race detector sees who else
	for range 64 {
		wg.Go(func() {
			err := locker.Do(t.ctx, l, locker.Request{Name: name, TTL: long}, func(context.Context, *locker.Lock) error {
				entered++
				return nil
			})
			if err != nil {
				t.Errorf("Do: %v", err)
			}
		})
	}
	t.promptly("64 waiters", wg.Wait)
	if n := tooMany.Load(); n != 0 {
		t.Errorf("%d attempts of one process and name were under way at once, want 1", n)
	}
	if entered != 64 {
		t.Errorf("%d of 64 waiters got the lock", entered)
	}
}

func waitersQueueInOrder(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{}), t.key()
	first := t.acquire(l, locker.Request{Name: name, TTL: long})
	order := make(chan int, 5)
	var waiters []<-chan *locker.Lock
	for i := range cap(order) {
		req := locker.Request{Name: name, TTL: long}
		waiters = append(waiters, t.waitAs(locker.Func(func(ctx context.Context, req locker.Request) (*locker.Lock, error) {
			lock, err := l.Acquire(ctx, req)
			if err == nil {
				order <- i
				err = lock.Release(ctx)
			}
			return lock, err
		}), req, func(info locker.WaitingInfo) bool { return info.Queued == i }))
	}
	t.ok(first.Release(t.ctx), "Release")
	for i, ch := range waiters {
		t.got(ch, "in the queue")
		if next := <-order; next != i {
			t.Errorf("waiter %d got the lock in place of waiter %d", next, i)
		}
	}
}

func leaverPassesItsTurnOn(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{Policy: never}), t.key()
	for range 3 {
		lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
		waits := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(locker.WithTrace(t.ctx, &locker.Trace{Waiting: func(context.Context, locker.WaitingInfo) {
			select {
			case waits <- struct{}{}:
			default:
			}
		}}))
		head := background(func() error {
			lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: long})
			if err == nil {
				err = lock.Release(t.ctx) // it was woken before it was cancelled
			}
			return err
		})
		t.event(waits, "the head waits")
		behind := t.waitAs(l, locker.Request{Name: name, TTL: long}, func(info locker.WaitingInfo) bool { return info.Queued == 1 })
		released := background(func() error { return lock.Release(t.ctx) })
		cancel() // as the wake-up comes
		if err := t.result(head, "the head, cancelled"); err != nil {
			t.is(err, context.Canceled, "the head, cancelled")
		}
		t.ok(t.result(released, "Release"), "Release")
		t.ok(t.got(behind, "behind a waiter that gave up").Release(t.ctx), "Release")
	}
}

func processesExcludeEachOther(t *caseT) {
	name := t.key()
	var wg sync.WaitGroup
	var inside atomic.Int32
	var last atomic.Int64
	for range 3 {
		l := t.waiting(t.direct(), retry.Config{})
		for range 4 {
			wg.Go(func() {
				for range 5 {
					err := locker.Do(t.ctx, l, locker.Request{Name: name, TTL: long, Fenced: true}, func(_ context.Context, lock *locker.Lock) error {
						defer inside.Add(-1)
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d are inside at once", n)
						}
						if before := last.Swap(lock.Fence()); before >= lock.Fence() {
							t.Errorf("the fencing token went from %d to %d", before, lock.Fence())
						}
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if t.exists(name) {
		t.Errorf("the key is still there after the last release")
	}
}

func waiterGivesUp(t *caseT) {
	// With this policy the waiter is idle when its time is over: an attempt that is cut off has an unknown outcome. Nor does a
	// strategy ask to come back then (rwhash does so after 400 ms).
	l, name := t.waiting(t.direct(), retry.Config{Policy: never}), t.key()
	lock := t.acquire(t.direct(), locker.Request{Name: name, TTL: long, Note: "busy"})
	for what, tc := range map[string]struct {
		timeout time.Duration
		req     locker.Request
		match   error
	}{
		"MaxWait":  {caseLimit, locker.Request{MaxWait: 3 * shortly}, locker.ErrMaxWait},
		"deadline": {3 * shortly, locker.Request{}, context.DeadlineExceeded},
		"NoWait":   {caseLimit, locker.Request{NoWait: true}, locker.ErrNotAcquired},
	} {
		tc.req.Name = name
		ctx, cancel := context.WithTimeout(t.ctx, tc.timeout)
		err := t.result(background(func() error { _, err := l.Acquire(ctx, tc.req); return err }), what)
		cancel()
		t.is(err, locker.ErrNotAcquired, "%s", what)
		t.is(err, tc.match, "%s", what)
		var ce *locker.ContentionError
		if !errors.As(err, &ce) || ce.Note != "busy" {
			t.Errorf("%s: %v does not tell who holds the lock", what, err)
		}
	}
	ctx, cancelWait := context.WithCancel(t.ctx)
	result := background(func() error { _, err := l.Acquire(ctx, locker.Request{Name: name}); return err })
	cancelWait()
	t.is(t.result(result, "a cancelled waiter"), context.Canceled, "a cancelled waiter")
	if !t.h.lacks(FeatureSubscribe) {
		ce := t.contended(t.direct(), locker.Request{Name: name})
		t.eventually("nobody listens any more", func() bool { return t.listeners(ce.Channel.Name()) == 0 })
	}
	t.ok(lock.Release(t.ctx), "Release")
	t.free(l, name)
}

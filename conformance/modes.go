package conformance

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

func shares(c Capabilities) bool   { return c.Shared }
func converts(c Capabilities) bool { return c.Shared && c.Convert }
func reenters(c Capabilities) bool { return c.Reentrant }

// Cases for strategies with shared or reentrant locks.
var modeCases = []testCase{
	{
		name: "readers hold at once", contract: 1, on: suite.WithoutSentinel, can: shares,
		why: "shared holders do not exclude each other, and each excludes a writer",
		run: readersHoldAtOnce,
	},
	{
		name: "a reader releases its own hold", contract: 1, on: suite.WithoutSentinel, can: shares,
		why: "with one key for all readers the first to release would let a writer in next to the others",
		run: readerReleasesItsOwn,
	},
	{
		name: "a reader's lease is its own", contract: 8, on: suite.OnlyMemory, can: shares,
		why: "with one expiry for all readers a short lease ends a long one, or a long one keeps a dead reader alive",
		run: readersLeaseIsItsOwn,
	},
	{
		name: "shared waiters enter together", contract: 13, on: suite.WithoutSentinel, can: shares,
		why: "a release wakes all readers at the head of the queue, or they would hold one after the other",
		run: sharedWaitersEnterTogether,
	},
	{
		name: "a shared acquire whose reply is lost counts once", contract: 4, on: suite.OneAddress, can: shares,
		why: "the resent command must find its own hold, or one release would not be enough",
		run: func(t *caseT) { lostAcquireCountsOnce(t, locker.Request{Mode: locker.Shared}) },
	},
	{
		name: "an owner enters again", contract: 1, on: suite.WithoutSentinel, can: reenters,
		why: "nested work under one owner must not wait for itself, and the lock ends with the last hold",
		run: ownerEntersAgain,
	},
	{
		name: "a re-entry whose reply is lost counts once", contract: 4, on: suite.OneAddress, can: reenters,
		why: "a counter goes up twice for an acquire that is sent twice, and the lock is never free again",
		run: func(t *caseT) { lostAcquireCountsOnce(t, locker.Request{Owner: "me"}) },
	},
	{
		name: "a release whose reply is lost ends one hold", contract: 7, on: suite.OneAddress, can: reenters,
		why: "a counter goes down twice for a release that is sent twice, and the outer hold is gone",
		run: lostReleaseEndsOneHold,
	},
	{
		name: "a shorter re-entry never shrinks the lease", contract: 9, on: suite.OnlyMemory, can: reenters,
		why: "the outer hold was promised its Deadline",
		run: shorterReentryNeverShrinks,
	},
	{
		name: "a nested acquire does not wait for the queue", contract: 13, on: suite.WithoutSentinel, can: reenters,
		why: "the queue waits for the nested work to end",
		run: nestedDoesNotQueue,
	},
	{
		name: "a nested acquire outlives a transient error", contract: 13, on: suite.OnlyMemory, can: reenters,
		why: "an acquire that queued after an error would wait behind those that wait for its own lock, for ever",
		run: nestedOutlivesAnOutage,
	},
}

func readersHoldAtOnce(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	read, write := locker.Request{Name: name, TTL: long, Mode: locker.Shared}, locker.Request{Name: name, TTL: long}
	first, second := t.acquire(a, read), t.acquire(b, read)
	if first.Mode() != locker.Shared {
		t.Errorf("a shared lock reports %v", first.Mode())
	}
	t.contended(a, write)
	t.OK(second.Release(t.Ctx), "Release of the second reader")
	t.contended(b, write)
	t.OK(first.Release(t.Ctx), "Release of the first reader")
	writer := t.acquire(a, write)
	t.contended(b, read)
	t.contended(b, write)
	t.OK(writer.Release(t.Ctx), "Release of the writer")
	t.OK(t.acquire(b, read).Release(t.Ctx), "Release")
	t.gone(name, "after the last release")
}

func readerReleasesItsOwn(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	read, write := locker.Request{Name: name, TTL: long, Mode: locker.Shared}, locker.Request{Name: name, TTL: long}
	first, second, third := t.acquire(a, read), t.acquire(b, read), t.acquire(a, read)
	for _, lock := range []*locker.Lock{second, first} {
		t.OK(lock.Release(t.Ctx), "Release of a reader")
		t.contended(b, write)
		t.OK(third.Renew(t.Ctx, 0), "Renew of the reader that is left")
	}
	t.OK(third.Release(t.Ctx), "Release of the last reader")
	t.free(a, name)
}

func readersLeaseIsItsOwn(t *caseT) {
	a, b := t.direct(), t.direct()
	for what, shortFirst := range map[string]bool{"a short lease after a long one": false, "a short lease before a long one": true} {
		name := t.Key()
		short := locker.Request{Name: name, TTL: brief, Mode: locker.Shared}
		lasts := locker.Request{Name: name, TTL: long, Mode: locker.Shared}
		write := locker.Request{Name: name, TTL: long}
		var dies, lives *locker.Lock
		if shortFirst {
			dies = t.acquireExpiring(short)
			lives = t.acquire(b, lasts)
		} else {
			lives = t.acquire(b, lasts)
			dies = t.acquireExpiring(short)
		}
		t.endsAtDeadline(dies)
		t.contended(a, write)
		t.held(lives)
		t.covers(lives)
		t.OK(lives.Renew(t.Ctx, 0), "%s: Renew of the long one", what)
		t.OK(lives.Release(t.Ctx), "%s: Release of the long one", what)
		t.freeSoon(a, write, what+": a writer gets in, although one reader died")
	}
}

func sharedWaitersEnterTogether(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{}), t.Key()
	writer := t.acquire(l, locker.Request{Name: name, TTL: long})
	var waiting []<-chan *locker.Lock
	for range 3 {
		waiting = append(waiting, t.wait(l, locker.Request{Name: name, TTL: long, Mode: locker.Shared}))
	}
	t.OK(writer.Release(t.Ctx), "Release of the writer")
	var readers []*locker.Lock
	for _, ch := range waiting {
		readers = append(readers, t.got(ch, "while the others hold"))
	}
	for _, r := range readers {
		t.held(r)
		t.OK(r.Release(t.Ctx), "Release of a reader")
	}
}

// lostAcquireCountsOnce loses the reply of a first and of a further hold, and releases each once.
func lostAcquireCountsOnce(t *caseT, req locker.Request) {
	for _, fault := range t.noticed(answerLost) {
		p, l := t.behind()
		req.Name, req.TTL = t.Key(), faulty
		var locks []*locker.Lock
		for range 2 {
			trap := p.Fail(req.Name, fault)
			locks = append(locks, t.acquire(l, req))
			t.Event(trap.Hit(), "the fault happens")
			t.OK(locks[0].Renew(t.Ctx, long), "Renew")
		}
		other := t.direct()
		for _, lock := range locks {
			t.contended(other, locker.Request{Name: req.Name, Owner: "another"})
			t.OK(lock.Release(t.Ctx), "Release")
		}
		t.free(other, req.Name)
	}
}

func ownerEntersAgain(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, innerFirst := range []bool{true, false} {
		name := t.Key()
		mine, theirs := locker.Request{Name: name, TTL: long, Owner: "me"},
			locker.Request{Name: name, TTL: long, Owner: "you"}
		locks := []*locker.Lock{t.acquire(a, mine), t.acquire(b, mine), t.acquire(a, mine)}
		if !innerFirst {
			locks[0], locks[2] = locks[2], locks[0]
		}
		for _, lock := range locks {
			t.contended(a, theirs)
			t.contended(b, locker.Request{Name: name})
			t.OK(lock.Release(t.Ctx), "Release of one hold")
			t.Is(lock.Release(t.Ctx), locker.ErrReleased, "Release of the same hold again")
		}
		t.free(a, name)
		t.gone(name, "after the last release")
	}
}

func lostReleaseEndsOneHold(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		p, l := t.behind()
		req := locker.Request{Name: t.Key(), TTL: long, Owner: "me"}
		outer, inner := t.acquire(l, req), t.acquire(l, req)
		trap := p.Fail(req.Name, fault)
		err := t.Call("Release", func() error { return inner.Release(t.Ctx) })
		t.Event(trap.Hit(), "the fault happens")
		t.OK(err, "Release of the inner hold, %s", what)
		t.contended(t.direct(), locker.Request{Name: req.Name, Owner: "you"})
		t.OK(outer.Renew(t.Ctx, 0), "Renew of the outer hold")
		t.OK(outer.Release(t.Ctx), "Release of the outer hold")
		t.free(l, req.Name)
	}
}

func shorterReentryNeverShrinks(t *caseT) {
	l, name := t.direct(), t.Key()
	outer := t.acquire(l, locker.Request{Name: name, TTL: long, Owner: "me"})
	inner := t.acquireExpiring(locker.Request{Name: name, TTL: brief, Owner: "me"})
	t.covers(outer)
	t.endsAtDeadline(inner)
	t.contended(t.direct(), locker.Request{Name: name, Owner: "you"})
	t.covers(outer)
	t.OK(outer.Renew(t.Ctx, 0), "Renew of the outer hold")
	t.OK(outer.Release(t.Ctx), "Release of the outer hold")
	t.Is(inner.Release(t.Ctx), locker.ErrLost, "Release of the inner hold, which had ended")
	t.free(l, name)
}

// nestedDoesNotQueue nests acquires with the hold in their ctx, and one with the owner alone.
func nestedDoesNotQueue(t *caseT) {
	l, name := t.waiting(t.direct(), retry.Config{}), t.Key()
	var got <-chan *locker.Lock
	own := locker.Request{Name: name, TTL: long, Owner: "me"}
	outer := t.acquire(l, own)
	got = t.wait(l, locker.Request{Name: name, TTL: long, Owner: "another"})
	t.OK(t.Call("an acquire of the owner behind a waiter", func() error {
		inner, err := l.Acquire(t.Ctx, own)
		if err != nil {
			return err
		}
		return inner.Release(t.Ctx)
	}), "an acquire of the owner behind a waiter, and its release")
	t.OK(outer.Release(t.Ctx), "Release of the outer hold")
	t.OK(t.got(got, "when the nested work is done").Release(t.Ctx), "Release of the waiter")
	err := locker.Do(t.Ctx, l, locker.Request{Name: name, TTL: long}, func(ctx context.Context, _ *locker.Lock) error {
		got = t.wait(l, locker.Request{Name: name, TTL: long, Owner: "another"})
		nested := t.Call("a nested Do behind a waiter", func() error {
			return locker.Do(ctx, l, locker.Request{Name: name, TTL: long},
				func(context.Context, *locker.Lock) error { return nil })
		})
		t.OK(nested, "a nested Do behind a waiter")
		return nil
	})
	t.OK(err, "Do")
	t.OK(t.got(got, "when the nested work is done").Release(t.Ctx), "Release of the waiter")
}

func nestedOutlivesAnOutage(t *caseT) {
	p, bare := t.behind()
	l := t.waiting(bare, retry.Config{})
	for what, bound := range map[string]time.Duration{"without a deadline": 0, "with a deadline": t.Limit} {
		name := t.Key()
		var rival <-chan *locker.Lock
		err := locker.Do(t.Ctx, l, locker.Request{Name: name, TTL: long},
			func(ctx context.Context, _ *locker.Lock) error {
				rival = t.wait(l, locker.Request{Name: name, TTL: long, Owner: "another"})
				if bound > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, bound)
					defer cancel()
				}
				failed := make(chan struct{}, 1)
				ctx = locktrace.With(ctx, &locktrace.Trace{Waiting: func(context.Context, locktrace.WaitingInfo) {
					select {
					case failed <- struct{}{}:
					default:
					}
				}})
				t.goesDown(p, bare)
				nested := suite.Background(func() error {
					return locker.Do(ctx, l, locker.Request{Name: name, TTL: long},
						func(context.Context, *locker.Lock) error { return nil })
				})
				timer := time.NewTimer(time.Second)
				select {
				case <-failed:
				case <-timer.C: // it keeps resending the command: its outcome is unknown
				}
				timer.Stop()
				t.OK(p.Accept(), "take connections again")
				t.OK(t.Result(nested, "a nested Do through an outage, "+what), "a nested Do through an outage, %s", what)
				return nil
			})
		t.OK(err, "Do")
		t.OK(t.got(rival, "when the nested work is done").Release(t.Ctx), "Release of the waiter")
	}
}

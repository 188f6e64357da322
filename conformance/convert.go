package conformance

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/locktrace"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// Cases for strategies with conversion between shared and exclusive, without starvation of readers
// or writers.
var convertCases = []testCase{
	{
		name: "a downgrade lets no writer in", contract: 1, on: suite.WithoutSentinel, can: converts,
		why: "if it were released and acquired again, another writer could change the data in between",
		run: downgradeLetsNoWriterIn,
	},
	{
		name: "a downgrade wakes readers", contract: 12, on: suite.OnlyMemory, can: converts, needs: subscribes,
		why: "waiting readers may enter now, and no release will be published",
		run: downgradeWakesReaders,
	},
	{
		name: "only the sole reader upgrades", contract: 1, on: suite.OnlyMemory, can: converts,
		why: "a writer next to a reader excludes nobody, and a reader whose upgrade is refused keeps its hold",
		run: soleReaderUpgrades,
	},
	{
		name: "two upgraders do not wait for each other", contract: 1, on: suite.WithoutSentinel, can: converts,
		why: "each would keep the other from being the sole reader, for ever",
		run: twoUpgraders,
	},
	{
		name: "a conversion whose reply is lost is done once", contract: 4, on: suite.OneAddress, can: converts,
		why: "the resent command must find that the conversion was done, and report the mode",
		run: lostConversion,
	},
	{
		name: "a conversion that runs late changes nothing", contract: 5, on: suite.OneAddress, can: converts,
		why: "an upgrade that arrives after the downgrade that followed it would make a reader exclusive without its knowledge",
		run: lateConversion,
	},
	{
		name: "a handle has the mode of its lock", contract: 11, on: suite.WithoutSentinel, can: converts,
		why: "a process that resumes a reader's hold as a writer's would write while others read",
		run: handleHasTheMode,
	},
	{
		name: "a conversion keeps the lease", contract: 8, on: suite.WithoutSentinel, can: converts,
		why: "a conversion does not renew, so the Deadline stays as it is",
		run: conversionKeepsTheLease,
	},
	{
		name: "readers have the last writer's token", contract: fencing, on: suite.WithoutSentinel, can: shares,
		why: "what a reader does with what it read comes after that writer and before the next",
		run: readersHaveTheLastToken,
	},
	{
		name: "an upgrade mints a token", contract: fencing, on: suite.WithoutSentinel, can: converts,
		why: "a reader that becomes the writer is a new one, and its token must exceed the one that readers have",
		run: upgradeMints,
	},
	{
		name: "a waiting writer gets in although readers keep coming", contract: 13, on: suite.WithoutSentinel,
		can: converts,
		why: "readers that overlap without a gap keep a writer out for ever",
		run: writerGetsIn,
	},
	{
		name: "an attempt that does not wait keeps nobody out", contract: 13, on: suite.WithoutSentinel, can: converts,
		why: "it will not try again, so readers would be kept out for nothing",
		run: noWaitKeepsNobodyOut,
	},
}

// reader and writer return requests for a shared and an exclusive lock, with the TTL long.
func reader(name string) locker.Request {
	return locker.Request{Name: name, TTL: long, Mode: locker.Shared}
}

func writer(name string) locker.Request { return locker.Request{Name: name, TTL: long} }

// atOnce returns req with NoWait, so that a refused writer does not keep readers out.
func atOnce(req locker.Request) locker.Request {
	req.NoWait = true
	return req
}

// mode demands the mode of a held lock and of its handle.
func (t *caseT) mode(lock *locker.Lock, want locker.Mode) {
	t.Helper()
	t.held(lock)
	if lock.Mode() != want || lock.Handle().Mode() != want {
		t.Errorf("the Lock reports %v, its Handle %v; want %v", lock.Mode(), lock.Handle().Mode(), want)
	}
}

func downgradeLetsNoWriterIn(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, writer(name))
	ctx, cancel := context.WithCancel(t.Ctx)
	stopped := suite.Background(func() error {
		for ctx.Err() == nil {
			other, err := b.Acquire(t.Ctx, atOnce(writer(name)))
			if err == nil {
				return errors.Join(errors.New("a writer got in"), other.Release(t.Ctx))
			}
			if !errors.Is(err, locker.ErrNotAcquired) {
				return err
			}
		}
		return nil
	})
	for range 20 {
		t.OK(lock.Downgrade(t.Ctx), "Downgrade")
		t.mode(lock, locker.Shared)
		other := t.acquire(b, reader(name))
		t.OK(lock.Downgrade(t.Ctx), "Downgrade of a reader")
		t.OK(other.Release(t.Ctx), "Release of another reader")
		t.OK(lock.Upgrade(t.Ctx), "Upgrade")
		t.mode(lock, locker.Exclusive)
		t.contended(b, atOnce(reader(name)))
		t.OK(lock.Upgrade(t.Ctx), "Upgrade of a writer")
	}
	cancel()
	t.OK(t.Result(stopped, "the attempts of a writer"), "the attempts of a writer")
	t.OK(lock.Release(t.Ctx), "Release")
	t.free(a, name)
}

func downgradeWakesReaders(t *caseT) {
	l, other, name := t.direct(), t.waiting(t.direct(), retry.Config{}), t.Key()
	lock := t.acquire(l, writer(name))
	by := make(chan locktrace.WakeReason, 8)
	ctx := locktrace.With(t.Ctx, &locktrace.Trace{
		Woken: func(_ context.Context, info locktrace.WokenInfo) { by <- info.By },
	})
	waiting := []<-chan *locker.Lock{t.waitUnder(ctx, other, reader(name), subscribed)}
	for range 2 {
		waiting = append(waiting, t.wait(other, reader(name)))
	}
	for len(by) > 0 {
		<-by
	}
	t.OK(lock.Downgrade(t.Ctx), "Downgrade")
	for _, ch := range waiting {
		t.OK(t.got(ch, "after the downgrade").Release(t.Ctx), "Release of a reader")
	}
	if reason := <-by; reason != locktrace.ByRelease {
		t.Errorf("the first reader was woken by %q, want %q", reason, locktrace.ByRelease)
	}
	t.mode(lock, locker.Shared)
	t.OK(lock.Release(t.Ctx), "Release")
}

func soleReaderUpgrades(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock, other := t.acquire(a, reader(name)), t.acquire(b, locker.Request{Name: name, TTL: watched, Mode: locker.Shared})
	t.Promptly("Upgrade beside another reader", func() {
		err := lock.Upgrade(t.Ctx)
		t.Is(err, locker.ErrNotAcquired, "Upgrade beside another reader")
		t.isNot(err, locker.ErrNotHeld, "Upgrade beside another reader")
	})
	t.mode(lock, locker.Shared)
	t.OK(t.acquire(b, reader(name)).Release(t.Ctx), "Release of a reader that came after the refused upgrade")
	t.Event(other.Done(), "the other reader's lease ends")
	t.Eventually("the reader that is left upgrades, although another died",
		func() bool { return lock.Upgrade(t.Ctx) == nil })
	t.mode(lock, locker.Exclusive)
	t.contended(b, atOnce(reader(name)))
	t.contended(b, atOnce(writer(name)))
	t.OK(lock.Renew(t.Ctx, 0), "Renew after an upgrade")
	t.OK(lock.Release(t.Ctx), "Release after an upgrade")
	t.free(b, name)
}

func twoUpgraders(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	one, two := t.acquire(a, reader(name)), t.acquire(b, reader(name))
	results := []<-chan error{
		suite.Background(func() error { return one.Upgrade(t.Ctx) }), suite.Background(func() error { return two.Upgrade(t.Ctx) }),
	}
	for _, result := range results {
		t.Is(t.Result(result, "Upgrade"), locker.ErrNotAcquired, "Upgrade of one of two readers")
	}
	t.mode(one, locker.Shared)
	t.mode(two, locker.Shared)
	t.OK(two.Release(t.Ctx), "Release of one")
	t.OK(one.Upgrade(t.Ctx), "Upgrade of the other")
	t.mode(one, locker.Exclusive)
	t.OK(one.Release(t.Ctx), "Release")
	t.free(b, name)
}

func lostConversion(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: faulty, Fenced: true})
		t.OK(lock.Downgrade(t.Ctx), "Downgrade") // the server knows the script now
		fence := lock.Fence()
		for mode, convert := range map[locker.Mode]func(context.Context) error{locker.Exclusive: lock.Upgrade,
			locker.Shared: lock.Downgrade} {
			trap := p.Fail(lock.Name(), fault)
			t.OK(t.Call("a conversion", func() error { return convert(t.Ctx) }), "a conversion to %v, %s", mode, what)
			t.Event(trap.Hit(), "the fault happens")
			t.mode(lock, mode)
		}
		t.OK(lock.Upgrade(t.Ctx), "Upgrade")
		if lock.Fence() <= fence {
			t.Errorf("the fencing token went from %d to %d", fence, lock.Fence())
		}
		t.contended(t.direct(), atOnce(reader(lock.Name())))
		t.OK(lock.Release(t.Ctx), "Release")
		t.free(l, lock.Name())
	}
}

func lateConversion(t *caseT) {
	p, l := t.behind()
	lock, observer := t.acquire(l, reader(t.Key())), t.direct()
	t.OK(lock.Downgrade(t.Ctx), "Downgrade") // the server knows the script now
	late, err := t.unanswered(p, lock.Name(), faultproxy.StallRequest, "Upgrade", lock.Upgrade)
	t.Is(err, locker.ErrUnknownOutcome, "a cancelled upgrade")
	t.mode(lock, locker.Shared)
	sent := p.Sent(lock.Name())
	later := suite.Background(func() error { return lock.Downgrade(t.Ctx) })
	// On another connection it overtakes the upgrade.
	t.Eventually("the downgrade is sent", func() bool { return p.Sent(lock.Name()) > sent })
	late.Release()
	t.OK(t.Result(later, "Downgrade"), "Downgrade after an upgrade of unknown outcome")
	t.Event(late.Executed(), "the upgrade arrives")
	t.OK(t.acquire(observer, reader(lock.Name())).Release(t.Ctx), "Release of another reader")
	t.OK(lock.Release(t.Ctx), "Release")
}

func handleHasTheMode(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, writer(name))
	stale := lock.Handle()
	t.OK(lock.Downgrade(t.Ctx), "Downgrade")
	_, err := locker.Resume(t.Ctx, b, stale)
	t.Is(err, locker.ErrNotHeld, "Resume by a handle from before the downgrade")
	h, err := locker.ParseHandle(lock.Handle().Encode())
	t.OK(err, "ParseHandle")
	resumed, err := locker.Resume(t.Ctx, b, h)
	t.OK(err, "Resume")
	t.mode(resumed, locker.Shared)
	t.Is(lock.Upgrade(t.Ctx), locker.ErrLost, "Upgrade of the Lock that was taken over")
	t.OK(resumed.Upgrade(t.Ctx), "Upgrade of the resumed Lock")
	t.mode(resumed, locker.Exclusive)
	t.OK(resumed.Release(t.Ctx), "Release")
	t.free(a, name)
}

func conversionKeepsTheLease(t *caseT) {
	l, name := t.direct(), t.Key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long})
	deadline := lock.Deadline()
	for range 2 {
		for _, convert := range []func(context.Context) error{lock.Downgrade, lock.Upgrade} {
			t.OK(convert(t.Ctx), "a conversion")
			t.covers(lock)
			if !lock.Deadline().Equal(deadline) {
				t.Errorf("the Deadline moved by %v", lock.Deadline().Sub(deadline))
			}
			if left := t.PTTL(name); left > long {
				t.Errorf("the key lives for %v, the lease was %v", left, long)
			}
		}
	}
	t.OK(lock.Release(t.Ctx), "Release")
	t.Is(lock.Downgrade(t.Ctx), locker.ErrReleased, "Downgrade of a released Lock")
	t.Is(lock.Upgrade(t.Ctx), locker.ErrReleased, "Upgrade of a released Lock")
}

func readersHaveTheLastToken(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	read := reader(name)
	read.Fenced = true
	var last int64
	for range 3 {
		last = t.tenure(a, name, last)
		one, two := t.acquire(a, read), t.acquire(b, read)
		if one.Fence() != last || two.Fence() != last {
			t.Errorf("readers have the tokens %d and %d, the last writer had %d", one.Fence(), two.Fence(), last)
		}
		t.OK(one.Release(t.Ctx), "Release")
		t.OK(two.Release(t.Ctx), "Release")
	}
	first := t.acquire(a, locker.Request{Name: t.Key(), TTL: long, Mode: locker.Shared, Fenced: true})
	if first.Fence() <= 0 {
		t.Errorf("a reader before any writer has the token %d", first.Fence())
	}
	t.OK(first.Release(t.Ctx), "Release")
	t.tenure(b, first.Name(), first.Fence())
}

func upgradeMints(t *caseT) {
	l, name := t.direct(), t.Key()
	read := reader(name)
	read.Fenced = true
	lock := t.acquire(l, read)
	for range 3 {
		before := lock.Fence()
		t.OK(lock.Upgrade(t.Ctx), "Upgrade")
		upgraded := lock.Fence()
		t.OK(lock.Downgrade(t.Ctx), "Downgrade")
		if upgraded <= before || lock.Fence() != upgraded {
			t.Errorf("the token was %d, upgraded %d, downgraded %d", before, upgraded, lock.Fence())
		}
	}
	t.OK(lock.Release(t.Ctx), "Release")
	t.tenure(l, name, lock.Fence())
}

func writerGetsIn(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, reader(name))
	ch := t.wait(t.waiting(b, retry.Config{}), writer(name))
	// Each reader holds until the next one has acquired, as long as there is one.
	t.Eventually("a new reader is kept out for the writer", func() bool {
		next, err := a.Acquire(t.Ctx, atOnce(reader(name)))
		if errors.Is(err, locker.ErrNotAcquired) {
			return true
		}
		t.OK(err, "Acquire of a new reader")
		t.OK(lock.Release(t.Ctx), "Release of the reader before")
		lock = next
		return false
	})
	t.OK(lock.Renew(t.Ctx, 0), "Renew of the reader that holds")
	t.OK(lock.Release(t.Ctx), "Release of the last reader")
	t.OK(t.got(ch, "after the last reader").Release(t.Ctx), "Release of the writer")
}

func noWaitKeepsNobodyOut(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, reader(name))
	t.contended(b, atOnce(writer(name)))
	t.OK(t.acquire(a, reader(name)).Release(t.Ctx), "Release of a reader that came after")
	t.OK(lock.Release(t.Ctx), "Release")
	lock = t.acquire(a, writer(name))
	t.contended(b, atOnce(reader(name)))
	t.OK(lock.Release(t.Ctx), "Release")
	t.free(b, name)
	t.gone(name, "after the last release")
}

package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

// The cases of strategies whose holds change their mode, and which let neither readers nor writers
// starve.
var convertCases = []testCase{
	{
		name: "a downgrade lets no writer in", contract: 1, on: everywhere, can: converts,
		why: "released and acquired again, the lock is another writer's in between, and what was written is not what is read",
		run: downgradeLetsNoWriterIn,
	},
	{
		name: "a downgrade wakes readers", contract: 12, on: everywhere, can: converts,
		why: "nothing keeps them out any more, and no release will tell them",
		run: downgradeWakesReaders,
	},
	{
		name: "only the sole reader upgrades", contract: 1, on: everywhere, can: converts,
		why: "a writer beside a reader excludes nobody, and the refused one was promised to go on reading",
		run: soleReaderUpgrades,
	},
	{
		name: "two upgraders do not wait for each other", contract: 1, on: everywhere, can: converts,
		why: "each would keep the other from being the sole reader, for ever",
		run: twoUpgraders,
	},
	{
		name: "a conversion whose reply is lost is done once", contract: 4, on: proxied, can: converts,
		why: "sent again it must find its own work done, and know how the lock is held now",
		run: lostConversion,
	},
	{
		name: "a conversion that runs late changes nothing", contract: 5, on: proxied, can: converts,
		why: "an upgrade that was followed by a downgrade makes a reader exclusive that knows nothing of it, when it arrives last",
		run: lateConversion,
	},
	{
		name: "a handle has the mode of its lock", contract: 11, on: everywhere, can: converts,
		why: "a process that takes a hold over as a writer's, while it is a reader's, writes beside other readers",
		run: handleHasTheMode,
	},
	{
		name: "a conversion keeps the lease", contract: 8, on: everywhere, can: converts,
		why: "it was not asked for another one, and the Deadline stays as it is",
		run: conversionKeepsTheLease,
	},
	{
		name: "readers have the last writer's token", contract: fencing, on: everywhere, can: shares,
		why: "what a reader does by what it read belongs behind that writer and before the next",
		run: readersHaveTheLastToken,
	},
	{
		name: "an upgrade mints a token", contract: fencing, on: everywhere, can: converts,
		why: "a reader that becomes the writer is a new one, and its token must exceed the one that readers have",
		run: upgradeMints,
	},
	{
		name: "a waiting writer gets in although readers keep coming", contract: 13, on: everywhere, can: converts,
		why: "readers that overlap without a gap keep a writer out for ever",
		run: writerGetsIn,
	},
	{
		name: "a writer that gave up lets readers in", contract: 13, on: everywhere, can: converts,
		why: "nobody waits any more: to keep readers out for it would cost them for nothing",
		run: goneWriterLetsReadersIn,
	},
	{
		name: "an attempt that does not wait keeps nobody out", contract: 13, on: everywhere, can: converts,
		why: "it will not come back, so that readers would stand aside for nobody",
		run: noWaitKeepsNobodyOut,
	},
}

// reader and writer are requests for a lock that outlives the case.
func reader(name string) locker.Request {
	return locker.Request{Name: name, TTL: long, Mode: locker.Shared}
}

func writer(name string) locker.Request { return locker.Request{Name: name, TTL: long} }

// atOnce is req without waiting, so that its refusal leaves nothing behind.
func atOnce(req locker.Request) locker.Request {
	req.NoWait = true
	return req
}

// mode demands how a lock is held, by what it says.
func (t *caseT) mode(lock *locker.Lock, want locker.Mode) {
	t.Helper()
	t.held(lock)
	if lock.Mode() != want || lock.Handle().Mode() != want {
		t.Errorf("the Lock says %v, its Handle %v; want %v", lock.Mode(), lock.Handle().Mode(), want)
	}
}

func downgradeLetsNoWriterIn(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	lock := t.acquire(a, writer(name))
	ctx, cancel := context.WithCancel(t.ctx)
	stopped := background(func() error {
		for ctx.Err() == nil {
			other, err := b.Acquire(t.ctx, atOnce(writer(name)))
			if err == nil {
				return errors.Join(errors.New("a writer got in"), other.Release(t.ctx))
			}
			if !errors.Is(err, locker.ErrNotAcquired) {
				return err
			}
		}
		return nil
	})
	for range 20 {
		t.ok(lock.Downgrade(t.ctx), "Downgrade")
		t.mode(lock, locker.Shared)
		other := t.acquire(b, reader(name))
		t.ok(lock.Downgrade(t.ctx), "Downgrade of a reader")
		t.ok(other.Release(t.ctx), "Release of another reader")
		t.ok(lock.Upgrade(t.ctx), "Upgrade")
		t.mode(lock, locker.Exclusive)
		t.contended(b, atOnce(reader(name)))
		t.ok(lock.Upgrade(t.ctx), "Upgrade of a writer")
	}
	cancel()
	t.ok(t.result(stopped, "the attempts of a writer"), "the attempts of a writer")
	t.ok(lock.Release(t.ctx), "Release")
	t.free(a, name)
}

func downgradeWakesReaders(t *caseT) {
	l, other, name := t.direct(), t.waiting(t.direct(), retry.Config{}), t.key()
	lock := t.acquire(l, writer(name))
	var waiting []<-chan *locker.Lock
	for range 3 {
		waiting = append(waiting, t.wait(other, reader(name)))
	}
	t.ok(lock.Downgrade(t.ctx), "Downgrade")
	for _, ch := range waiting {
		t.ok(t.got(ch, "after the downgrade").Release(t.ctx), "Release of a reader")
	}
	t.mode(lock, locker.Shared)
	t.ok(lock.Release(t.ctx), "Release")
}

func soleReaderUpgrades(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	lock, other := t.acquire(a, reader(name)), t.acquire(b, locker.Request{Name: name, TTL: brief, Mode: locker.Shared})
	t.promptly("Upgrade beside another reader", func() {
		err := lock.Upgrade(t.ctx)
		t.is(err, locker.ErrNotAcquired, "Upgrade beside another reader")
		t.isNot(err, locker.ErrNotHeld, "Upgrade beside another reader")
	})
	t.mode(lock, locker.Shared)
	t.ok(t.acquire(b, reader(name)).Release(t.ctx), "Release of a reader that came after the refused upgrade")
	t.event(other.Done(), "the other reader's lease ends")
	t.eventually("the reader that is left upgrades, although another died", func() bool { return lock.Upgrade(t.ctx) == nil })
	t.mode(lock, locker.Exclusive)
	t.contended(b, atOnce(reader(name)))
	t.contended(b, atOnce(writer(name)))
	t.ok(lock.Renew(t.ctx, 0), "Renew after an upgrade")
	t.ok(lock.Release(t.ctx), "Release after an upgrade")
	t.free(b, name)
}

func twoUpgraders(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	one, two := t.acquire(a, reader(name)), t.acquire(b, reader(name))
	results := []<-chan error{
		background(func() error { return one.Upgrade(t.ctx) }), background(func() error { return two.Upgrade(t.ctx) }),
	}
	for _, result := range results {
		t.is(t.result(result, "Upgrade"), locker.ErrNotAcquired, "Upgrade of one of two readers")
	}
	t.mode(one, locker.Shared)
	t.mode(two, locker.Shared)
	t.ok(two.Release(t.ctx), "Release of one")
	t.ok(one.Upgrade(t.ctx), "Upgrade of the other")
	t.mode(one, locker.Exclusive)
	t.ok(one.Release(t.ctx), "Release")
	t.free(b, name)
}

func lostConversion(t *caseT) {
	for what, fault := range answerLost {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.key(), TTL: faulty, Fenced: true})
		t.ok(lock.Downgrade(t.ctx), "Downgrade") // the server knows the script now
		fence := lock.Fence()
		for mode, convert := range map[locker.Mode]func(context.Context) error{locker.Exclusive: lock.Upgrade, locker.Shared: lock.Downgrade} {
			trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Fault: fault})
			t.ok(t.result(background(func() error { return convert(t.ctx) }), "a conversion"), "a conversion to %v, %s", mode, what)
			t.event(trap.Hit(), "the fault happens")
			t.mode(lock, mode)
		}
		t.ok(lock.Upgrade(t.ctx), "Upgrade")
		if lock.Fence() <= fence {
			t.Errorf("the fencing token went from %d to %d", fence, lock.Fence())
		}
		t.contended(t.direct(), atOnce(reader(lock.Name())))
		t.ok(lock.Release(t.ctx), "Release")
		t.free(l, lock.Name())
	}
}

func lateConversion(t *caseT) {
	p, l := t.behind()
	lock, observer := t.acquire(l, reader(t.key())), t.direct()
	t.ok(lock.Downgrade(t.ctx), "Downgrade") // the server knows the script now
	var late *faultproxy.Trap
	var err error
	t.eventually("an upgrade is cancelled before it is sent again", func() bool {
		before := p.Count(faultproxy.Contains(lock.Name()))
		late = p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Fault: faultproxy.StallRequest})
		ctx, cancel := context.WithCancel(t.ctx)
		result := background(func() error { return lock.Upgrade(ctx) })
		t.event(late.Hit(), "the upgrade is under way")
		cancel()
		err = t.result(result, "a cancelled upgrade")
		if err == nil && p.Count(faultproxy.Contains(lock.Name()))-before > 1 { // an attempt's time was over before the cancel
			late.Release()
			t.ok(lock.Downgrade(t.ctx), "Downgrade")
			return false
		}
		return true
	})
	t.is(err, locker.ErrUnknownOutcome, "a cancelled upgrade")
	t.mode(lock, locker.Shared)
	later := background(func() error { return lock.Downgrade(t.ctx) })
	select {
	case err = <-later:
	case <-time.After(3 * shortly): // this client sends it behind the upgrade, on the same connection
		late.Release()
		err = t.result(later, "Downgrade")
	}
	t.ok(err, "Downgrade after an upgrade of unknown outcome")
	late.Release()
	t.event(late.Executed(), "the upgrade arrives")
	t.ok(t.acquire(observer, reader(lock.Name())).Release(t.ctx), "Release of another reader")
	t.ok(lock.Release(t.ctx), "Release")
}

func handleHasTheMode(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	lock := t.acquire(a, writer(name))
	stale := lock.Handle()
	t.ok(lock.Downgrade(t.ctx), "Downgrade")
	_, err := locker.Resume(t.ctx, b, stale)
	t.is(err, locker.ErrNotHeld, "Resume by a handle from before the downgrade")
	h, err := locker.ParseHandle(lock.Handle().Encode())
	t.ok(err, "ParseHandle")
	resumed, err := locker.Resume(t.ctx, b, h)
	t.ok(err, "Resume")
	t.mode(resumed, locker.Shared)
	t.is(lock.Upgrade(t.ctx), locker.ErrLost, "Upgrade of the Lock that was taken over")
	t.ok(resumed.Upgrade(t.ctx), "Upgrade of the resumed Lock")
	t.mode(resumed, locker.Exclusive)
	t.ok(resumed.Release(t.ctx), "Release")
	t.free(a, name)
}

func conversionKeepsTheLease(t *caseT) {
	l, name := t.direct(), t.key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long})
	deadline := lock.Deadline()
	for range 2 {
		for _, convert := range []func(context.Context) error{lock.Downgrade, lock.Upgrade} {
			t.ok(convert(t.ctx), "a conversion")
			t.covers(lock)
			if !lock.Deadline().Equal(deadline) {
				t.Errorf("the Deadline moved by %v", lock.Deadline().Sub(deadline))
			}
			if left := t.pttl(name); left > long {
				t.Errorf("the key lives for %v, the lease was %v", left, long)
			}
		}
	}
	t.ok(lock.Release(t.ctx), "Release")
	t.is(lock.Downgrade(t.ctx), locker.ErrReleased, "Downgrade of a released Lock")
	t.is(lock.Upgrade(t.ctx), locker.ErrReleased, "Upgrade of a released Lock")
}

func readersHaveTheLastToken(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	read := reader(name)
	read.Fenced = true
	var last int64
	for range 3 {
		last = t.tenure(a, name, last)
		one, two := t.acquire(a, read), t.acquire(b, read)
		if one.Fence() != last || two.Fence() != last {
			t.Errorf("readers have the tokens %d and %d, the last writer had %d", one.Fence(), two.Fence(), last)
		}
		t.ok(one.Release(t.ctx), "Release")
		t.ok(two.Release(t.ctx), "Release")
	}
	first := t.acquire(a, locker.Request{Name: t.key(), TTL: long, Mode: locker.Shared, Fenced: true})
	if first.Fence() <= 0 {
		t.Errorf("a reader before any writer has the token %d", first.Fence())
	}
	t.ok(first.Release(t.ctx), "Release")
	t.tenure(b, first.Name(), first.Fence())
}

func upgradeMints(t *caseT) {
	l, name := t.direct(), t.key()
	read := reader(name)
	read.Fenced = true
	lock := t.acquire(l, read)
	for range 3 {
		before := lock.Fence()
		t.ok(lock.Upgrade(t.ctx), "Upgrade")
		upgraded := lock.Fence()
		t.ok(lock.Downgrade(t.ctx), "Downgrade")
		if upgraded <= before || lock.Fence() != upgraded {
			t.Errorf("the token was %d, upgraded %d, downgraded %d", before, upgraded, lock.Fence())
		}
	}
	t.ok(lock.Release(t.ctx), "Release")
	t.tenure(l, name, lock.Fence())
}

func writerGetsIn(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	lock := t.acquire(a, reader(name))
	ch := t.wait(t.waiting(b, retry.Config{}), writer(name))
	// Each reader holds until the next one has come, as long as one comes.
	t.eventually("a new reader is kept out for the writer", func() bool {
		next, err := a.Acquire(t.ctx, atOnce(reader(name)))
		if errors.Is(err, locker.ErrNotAcquired) {
			return true
		}
		t.ok(err, "Acquire of a new reader")
		t.ok(lock.Release(t.ctx), "Release of the reader before")
		lock = next
		return false
	})
	t.ok(lock.Renew(t.ctx, 0), "Renew of the reader that holds")
	t.ok(lock.Release(t.ctx), "Release of the last reader")
	t.ok(t.got(ch, "after the last reader").Release(t.ctx), "Release of the writer")
}

func goneWriterLetsReadersIn(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	lock := t.acquire(a, reader(name))
	_, err := t.waiting(b, retry.Config{}).Acquire(t.ctx, locker.Request{Name: name, MaxWait: 300 * time.Millisecond})
	t.is(err, locker.ErrMaxWait, "a writer that waits in vain")
	t.eventually("a new reader gets in after the writer gave up", func() bool {
		next, err := a.Acquire(t.ctx, reader(name))
		return err == nil && next.Release(t.ctx) == nil
	})
	t.ok(lock.Release(t.ctx), "Release")
}

func noWaitKeepsNobodyOut(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.key()
	lock := t.acquire(a, reader(name))
	t.contended(b, atOnce(writer(name)))
	t.ok(t.acquire(a, reader(name)).Release(t.ctx), "Release of a reader that came after")
	t.ok(lock.Release(t.ctx), "Release")
	lock = t.acquire(a, writer(name))
	t.contended(b, atOnce(reader(name)))
	t.ok(lock.Release(t.ctx), "Release")
	t.free(b, name)
	if t.exists(name) {
		t.Errorf("the key is still there after the last release")
	}
}

package conformance

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// Cases for a hold beside others of its name, and for fields that an operation must not change.
var besideCases = []testCase{
	{
		name: "a hold that ended stays ended beside others", contract: 9, on: suite.OnlyMemory, can: severalHold,
		why: "the key lasts for the other holds, so only the hold's own end keeps a late command from restoring it",
		run: endedStaysEnded,
	},
	{
		name: "only the last of several releases is published", contract: 12, on: suite.WithoutSentinel,
		can: severalHold, why: "a waiter that is woken while others hold tries in vain, once for each of them",
		run: lastReleaseIsPublished,
	},
	{
		name: "no operation shortens a lease", contract: 9, on: suite.WithoutSentinel,
		why: "the Lock that a renewal or a resume belongs to was promised its Deadline",
		run: nothingShortensTheLease,
	},
	{
		name: "no operation shortens the counter's life", contract: fencing, on: suite.WithoutSentinel,
		why: "a counter that ends before a lease starts again, below the tokens in use",
		run: nothingShortensTheCounter,
	},
	{
		name: "a counter without a number fails only what needs it", contract: 3, on: suite.WithoutSentinel,
		why: "who holds must still be able to renew and release, and what fails must write nothing",
		run: badCounterFailsWhatNeedsIt,
	},
	{
		name: "a resume can change the note", contract: 11, on: suite.WithoutSentinel,
		why: "others see who took the hold over and why, and the owner stays",
		run: resumeChangesTheNote,
	},
	{
		name: "a resumed reader keeps its token", contract: fencing, on: suite.WithoutSentinel, can: shares,
		why: "no writer came between, and a new token would outdate the readers beside it",
		run: resumedReaderKeepsToken,
	},
	{
		name: "the holds of an owner have one token", contract: fencing, on: suite.WithoutSentinel, can: reenters,
		why: "nested work with a higher token would outdate the work that it is part of",
		run: ownersHoldsHaveOneToken,
	},
	{
		name: "a refused upgrade names the other reader", contract: 1, on: suite.WithoutSentinel, can: converts,
		why: "people and waiters need to know for whom, and for how long, the upgrade has to wait",
		run: refusedUpgradeNamesReader,
	},
	{
		name: "a refused upgrade stays refused", contract: 5, on: suite.OnlyMemory, can: converts,
		why: "an upgrade that runs late would make a reader the writer without its knowledge",
		run: refusedUpgradeStaysRefused,
	},
	{
		name: "conversions go on after a resume", contract: 4, on: suite.OneAddress, can: converts,
		why: "a resume that forgets the number of conversions makes the next one look like an old one",
		run: conversionsGoOn,
	},
	{
		name: "only a downgrade is published", contract: 12, on: suite.WithoutSentinel, can: converts,
		why: "readers may enter after a downgrade and learn of it only there; nobody may after an upgrade",
		run: onlyDowngradeIsPublished,
	},
}

// severalHold selects the strategies with several holds of a name at once.
func severalHold(c Capabilities) bool { return (c.Shared || c.Reentrant) && !c.Renews }

// beside returns a request of a hold beside others of the same kind.
func (t *caseT) beside(name string, ttl time.Duration) locker.Request {
	req := locker.Request{Name: name, TTL: ttl, Owner: "me", Fenced: true}
	if t.h.Can.Shared {
		req.Mode = locker.Shared
	}
	return req
}

// bareLease returns the Lease inside lock, which sends commands even after the Lock has ended.
func bareLease(lock *locker.Lock) (bare lease.Lease) {
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { bare = inner; return inner })
	return bare
}

// endedStaysEnded holds back commands of two holds until both have ended.
func endedStaysEnded(t *caseT) {
	const brief = 3 * time.Second
	p, l := t.behind()
	other, name := t.direct(), t.Key()
	lives := t.acquire(other, t.beside(name, long))
	renewed, raised := t.acquire(l, t.beside(name, brief)), t.acquire(l, t.beside(name, brief))
	resumed, err := locker.Resume(t.Ctx, other, t.acquire(other, t.beside(name, brief)).Handle())
	t.OK(err, "Resume")
	last := t.counter(name)
	late := p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Fault: faultproxy.StallRequest, Every: true})
	for lock, op := range map[*locker.Lock]lease.Op{
		renewed: {Kind: lease.OpRenew, TTL: long}, raised: {Kind: lease.OpRaiseFence, Fence: last + time.Hour.Microseconds()},
	} {
		result := suite.Background(func() error { _, err := bareLease(lock).Do(t.Ctx, op); return err })
		defer func() {
			if t.Result(result, "a command of a hold that ended") == nil {
				t.Errorf("%v succeeded after the hold had ended", op.Kind)
			}
		}()
	}
	t.Event(late.Hit(), "a command is held back")
	for _, lock := range []*locker.Lock{renewed, raised, resumed} {
		t.Event(lock.Done(), "a lease ends")
	}
	one := func() bool {
		state, err := locker.Inspect(t.Ctx, other, name)
		t.OK(err, "Inspect")
		return state.Holds == 1
	}
	t.Eventually("the leases end at the server", one)
	late.Release()
	t.Event(late.Executed(), "the late commands arrive")
	if _, err := bareLease(resumed).Do(t.Ctx, lease.Op{Kind: lease.OpUndo}); !errors.Is(err, errors.ErrUnsupported) {
		t.Is(err, locker.ErrLost, "OpUndo of a resumed hold that ended")
	}
	for _, lock := range []*locker.Lock{renewed, raised, resumed} {
		_, err := locker.Resume(t.Ctx, other, lock.Handle())
		t.Is(err, locker.ErrNotHeld, "Resume of a hold that ended")
		t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release of a hold that ended")
	}
	if n := t.counter(name); !one() || n != last {
		t.Errorf("late commands restored a hold, or moved the counter from %d to %d", last, n)
	}
	t.OK(lives.Renew(t.Ctx, 0), "Renew of the hold that lasts")
	t.OK(lives.Release(t.Ctx), "Release of the hold that lasts")
	t.gone(name, "after the last release")
}

func lastReleaseIsPublished(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	locks := []*locker.Lock{
		t.acquire(a, t.beside(name, long)), t.acquire(b, t.beside(name, 2*long)), t.acquire(a, t.beside(name, long)),
	}
	_ = t.contendedFor(b, locker.Request{Name: name})
	sub := t.listenFor(name, t.wakeChannel(name))
	for i, lock := range locks {
		t.OK(lock.Release(t.Ctx), "Release")
		if n := sub.count(); (n > 0) != (i == len(locks)-1) {
			t.Errorf("release %d of %d was published %d times, want the last alone", i+1, len(locks), n)
		}
	}
}

func nothingShortensTheLease(t *caseT) {
	const shorter = long / 2
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, locker.Request{Name: name, TTL: shorter})
	began := time.Now()
	t.OK(lock.Renew(t.Ctx, long), "Renew")
	check := func(what string) {
		t.Helper()
		state, err := locker.Inspect(t.Ctx, a, name)
		t.OK(err, "Inspect")
		t.Left(t.PTTL(name), long, began, "after %s, the key", what)
		t.Left(state.Left, long, began, "after %s, the hold", what)
	}
	t.OK(lock.Renew(t.Ctx, shorter), "Renew")
	check("a shorter renewal")
	resumed, err := locker.Resume(t.Ctx, b, lock.Handle())
	t.OK(err, "Resume")
	check("a resume with a shorter TTL")
	if left := time.Until(resumed.Deadline()); left > shorter {
		t.Errorf("the resumed Lock counts on %v, its handle has a TTL of %v", left, shorter)
	}
	t.OK(resumed.Renew(t.Ctx, long), "Renew")
	t.OK(resumed.Release(t.Ctx), "Release")
}

func nothingShortensTheCounter(t *caseT) {
	const day = 24 * time.Hour
	l := t.direct()
	modes := []locker.Mode{locker.Exclusive}
	if t.h.Can.Shared {
		modes = append(modes, locker.Shared)
	}
	for _, mode := range modes {
		name, began := t.Key(), time.Now()
		check := func(what string, least time.Duration) {
			t.Helper()
			left := t.PTTL(t.fenceKey(name))
			switch endless := left == suite.NeverExpires; {
			case endless != t.h.Can.EndlessCounter:
				t.Errorf("after %s the counter lives for %v, EndlessCounter: %v", what, left, t.h.Can.EndlessCounter)
			case !endless && left < least-time.Since(began)-time.Second:
				t.Errorf("after %s the counter lives for %v, want %v", what, left, least)
			}
		}
		lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: true, Mode: mode, Owner: "me"})
		t.OK(lock.Renew(t.Ctx, 3*day), "Renew")
		raise := func(ahead int64) error {
			_, err := bareLease(lock).Do(t.Ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: lock.Fence() + ahead})
			return err
		}
		t.OK(raise(1000), "raise the token")
		check("a raise", 4*day)
		t.OK(lock.Renew(t.Ctx, 0), "Renew")
		check("a shorter renewal", 4*day)
		resumed, err := locker.Resume(t.Ctx, l, lock.Handle())
		t.OK(err, "Resume")
		lock = resumed
		check("a resume", 4*day)
		if t.h.Can.Reentrant || mode == locker.Shared {
			t.OK(t.acquire(l, t.beside(name, long)).Release(t.Ctx), "Release of a hold beside it")
			check("a shorter acquire", 4*day)
		}
		if t.h.Can.Convert {
			t.OK(lock.Downgrade(t.Ctx), "Downgrade")
			t.OK(lock.Upgrade(t.Ctx), "Upgrade")
			check("conversions", 4*day)
		}
		if t.h.Can.EndlessCounter {
			t.OK(lock.Release(t.Ctx), "Release")
			check("a release", 0)
			continue
		}
		for what, touch := range map[string]func() error{
			"a renewal": func() error { return lock.Renew(t.Ctx, 0) },
			"a raise":   func() error { return raise(0) },
		} {
			t.Do(t.fenceKey(name), "PEXPIRE", t.fenceKey(name), long.Milliseconds())
			t.OK(touch(), "%s", what)
			check(what+" of a hold whose counter would end", long+day)
		}
		t.OK(lock.Release(t.Ctx), "Release")
	}
}

func badCounterFailsWhatNeedsIt(t *caseT) {
	l := t.direct()
	for what, set := range map[string][]any{
		"a text": {"SET", "soon"}, "a list": {"RPUSH", "1"}, "the highest number": {"SET", "9007199254740991"},
	} {
		name := t.Key()
		key := t.fenceKey(name)
		lock := t.acquire(l, t.beside(name, long))
		fails := map[string]func() error{
			"Resume": func() error { _, err := locker.Resume(t.Ctx, l, lock.Handle()); return err },
			"OpRaiseFence": func() error {
				_, err := bareLease(lock).Do(t.Ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: lock.Fence() + 1})
				return err
			},
		}
		if severalHold(t.h.Can) {
			fails["an acquire beside it"] = func() error { _, err := l.Acquire(t.Ctx, t.beside(name, long)); return err }
		}
		if t.h.Can.Convert {
			fails["Upgrade"] = func() error { return lock.Upgrade(t.Ctx) }
		}
		t.Do(key, "DEL", key)
		t.Do(key, on(key, set)...)
		for call, do := range fails {
			err := do()
			if !errors.Is(err, driver.ErrPermanent) {
				t.Errorf("%s with %s for a counter: %v, want an error that does not pass", call, what, err)
			}
			for _, not := range []error{locker.ErrNotAcquired, locker.ErrNotHeld, locker.ErrUnknownOutcome} {
				t.isNot(err, not, "%s with %s for a counter", call, what)
			}
		}
		if state, err := locker.Inspect(t.Ctx, l, name); err != nil || state.Holds != 1 || state.Mode != lock.Mode() {
			t.Errorf("with %s for a counter calls that failed left %+v, %v", what, state, err)
		}
		if t.PTTL(key) != suite.NeverExpires {
			t.Errorf("%s got an expiry, as if it were a counter", what)
		}
		t.OK(lock.Renew(t.Ctx, 0), "Renew")
		t.OK(lock.Release(t.Ctx), "Release")
		t.Do(key, "DEL", key)
	}
}

func resumeChangesTheNote(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, locker.Request{Name: name, TTL: long, Owner: "me", Note: "mine"})
	if errors.Is(lock.SetNote(t.Ctx, "mine"), errors.ErrUnsupported) {
		return // changing a note is optional
	}
	resumed, err := b.Acquire(t.Ctx, locker.Request{Name: name, Resume: lock.Handle(), Note: "taken over"})
	t.OK(err, "Resume with a note")
	ce := t.contended(a, locker.Request{Name: name})
	if ce.Owner != "me" || ce.Note != "taken over" || resumed.Owner() != "me" {
		t.Errorf("resumed for %q, others are refused because of %q with the note %q", resumed.Owner(), ce.Owner, ce.Note)
	}
	if severalHold(t.h.Can) { // its owner makes it one of several
		_, err = b.Acquire(t.Ctx, locker.Request{Name: name, Resume: resumed.Handle(), Owner: "you"})
		t.Is(err, locker.ErrInvalid, "Resume for another owner")
	}
	t.OK(resumed.Release(t.Ctx), "Release")
}

func resumedReaderKeepsToken(t *caseT) {
	l, name := t.direct(), t.Key()
	last := t.tenure(l, name, 0)
	lock := t.acquire(l, t.beside(name, long))
	resumed, err := locker.Resume(t.Ctx, l, lock.Handle())
	t.OK(err, "Resume of a reader")
	if lock.Fence() != last || resumed.Fence() != last {
		t.Errorf("a reader has the token %d, resumed %d; the last writer had %d", lock.Fence(), resumed.Fence(), last)
	}
	t.OK(resumed.Release(t.Ctx), "Release")
	t.tenure(l, name, last)
}

func ownersHoldsHaveOneToken(t *caseT) {
	l, name := t.direct(), t.Key()
	plain := t.acquire(l, locker.Request{Name: name, TTL: long, Owner: "me"})
	first := t.acquire(l, t.beside(name, long))
	same := func(what string, want int64) *locker.Lock {
		t.Helper()
		lock := t.acquire(l, t.beside(name, long))
		if lock.Fence() != want {
			t.Errorf("%s the token of another hold is %d, want %d", what, lock.Fence(), want)
		}
		return lock
	}
	locks := []*locker.Lock{plain, same("beside a hold without a token and one with it", first.Fence())}
	high := first.Fence() + time.Hour.Microseconds()
	for _, to := range []int64{high, first.Fence()} {
		t.Do(t.fenceKey(name), "DEL", t.fenceKey(name)) // as an eviction may
		result, err := bareLease(first).Do(t.Ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: to})
		t.OK(err, "raise the token without its counter")
		if result.Fence != high {
			t.Errorf("raised to %d, and then to %d, the token is %d", high, to, result.Fence)
		}
	}
	locks = append(locks, same("after a raise", high))
	resumed, err := locker.Resume(t.Ctx, l, first.Handle())
	t.OK(err, "Resume")
	if resumed.Fence() <= high {
		t.Errorf("resumed, the token went from %d to %d", high, resumed.Fence())
	}
	locks = append(locks, resumed, same("after a resume", resumed.Fence()))
	for _, lock := range locks {
		t.OK(lock.Release(t.Ctx), "Release")
	}
	t.tenure(l, name, resumed.Fence())
}

func refusedUpgradeNamesReader(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, reader(name))
	other := t.acquire(b, locker.Request{Name: name, Mode: locker.Shared, TTL: 2 * long, Owner: "other", Note: "at work"})
	err := lock.Upgrade(t.Ctx)
	held, ok := errors.AsType[*locker.ContentionError](err)
	switch {
	case !ok:
		t.Errorf("a refused upgrade: %v, want a *locker.ContentionError", err)
	case held.Name != name || held.Owner != "other" || held.Note != "at work" || held.Channel.IsZero():
		t.Errorf("the upgrade was refused by %+v, want by the other reader", held)
	case held.Left <= long || held.Left > 2*long:
		t.Errorf("the other reader is said to hold for %v, want %v", held.Left, 2*long)
	}
	t.mode(lock, locker.Shared)
	t.OK(other.Release(t.Ctx), "Release of the other reader")
	t.OK(lock.Upgrade(t.Ctx), "Upgrade")
	t.OK(lock.Release(t.Ctx), "Release")
}

func refusedUpgradeStaysRefused(t *caseT) {
	p, l := t.behind()
	other, name := t.direct(), t.Key()
	lock, beside := t.acquire(l, reader(name)), t.acquire(other, reader(name))
	t.OK(lock.Downgrade(t.Ctx), "Downgrade") // the server knows the script now
	late := p.Fail(name, faultproxy.StallRequest)
	refused := suite.Background(func() error { return lock.Upgrade(t.Ctx) })
	t.Event(late.Hit(), "the upgrade is held back")
	t.Is(t.Result(refused, "an upgrade that is sent again"), locker.ErrNotAcquired, "an upgrade that is sent again")
	t.OK(beside.Release(t.Ctx), "Release of the other reader")
	late.Release()
	t.Event(late.Executed(), "the first send arrives")
	t.mode(lock, locker.Shared)
	t.OK(t.acquire(other, reader(name)).Release(t.Ctx), "Release of another reader")
	t.OK(lock.Release(t.Ctx), "Release")
}

func conversionsGoOn(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: faulty})
		t.OK(lock.Downgrade(t.Ctx), "Downgrade")
		t.OK(lock.Upgrade(t.Ctx), "Upgrade")
		warm, err := locker.Resume(t.Ctx, l, lock.Handle())
		t.OK(err, "Resume")
		t.OK(warm.Downgrade(t.Ctx), "Downgrade of a resumed Lock")
		trap := p.Fail(lock.Name(), fault)
		resumed, err := locker.Resume(t.Ctx, l, warm.Handle())
		t.OK(err, "Resume whose reply is %s", what)
		t.Event(trap.Hit(), "the fault happens")
		t.OK(resumed.Upgrade(t.Ctx), "Upgrade of a Lock whose resume was %s", what)
		t.mode(resumed, locker.Exclusive)
		t.OK(resumed.Downgrade(t.Ctx), "Downgrade")
		t.OK(t.acquire(t.direct(), reader(lock.Name())).Release(t.Ctx), "Release of another reader")
		t.OK(resumed.Release(t.Ctx), "Release")
	}
}

func onlyDowngradeIsPublished(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	lock := t.acquire(a, writer(name))
	sub := t.listenFor(name, t.wakeChannel(name))
	for range 3 {
		_ = t.contendedFor(b, reader(name))
		t.OK(lock.Downgrade(t.Ctx), "Downgrade")
		if sub.count() == 0 {
			t.Errorf("a downgrade was not published, though a reader waits")
		}
		t.contended(b, writer(name))
		t.OK(lock.Downgrade(t.Ctx), "Downgrade of a reader")
		t.OK(lock.Upgrade(t.Ctx), "Upgrade")
		if n := sub.count(); n != 0 {
			t.Errorf("an upgrade, or a downgrade of what is shared already, was published %d times", n)
		}
	}
	if !t.hasPlaces(name) {
		t.OK(lock.Release(t.Ctx), "Release")
		return
	}
	first := t.places(name, 1)[0]
	t.OK(lock.Downgrade(t.Ctx), "Downgrade")
	t.contended(b, reader(name)) // it waits behind the writer
	sub.count()
	t.OK(lock.Downgrade(t.Ctx), "Downgrade of a reader")
	if n := sub.count(); n != 0 {
		t.Errorf("a downgrade of a reader was published %d times, though a writer goes first", n)
	}
	t.OK(lock.Release(t.Ctx), "Release")
	t.OK(first.acquired().Release(t.Ctx), "Release")
}

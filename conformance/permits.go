package conformance

import (
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/semaphore"
)

// permitCases are about permits: most run on a semaphore.
var permitCases = []testCase{
	{
		name: "a lock has one permit", contract: 1, on: suite.WithoutSentinel,
		why: "whoever asks a lock for more permits than it has would believe in them",
		run: lockHasOnePermit,
	},
	{
		name: "permits are limited", contract: 1, on: suite.AllKinds, permits: true,
		why: "a semaphore that grants more than its permits lets too many work at once, and one that grants fewer wastes them",
		run: permitsAreLimited,
	},
	{
		name: "Inspect reports free permits", contract: 1, on: suite.WithoutSentinel, permits: true,
		why: "people ask it when permits do not come free",
		run: inspectReportsPermits,
	},
	{
		name: "two limits are an error", contract: 1, on: suite.WithoutSentinel, permits: true,
		why: "programs with different limits would grant too many permits, or report contention that never ends",
		run: twoLimitsAreAnError,
	},
	{
		name: "permits return at the end of a lease", contract: 8, on: suite.OnlyMemory, permits: true,
		why: "a holder that died would keep its permits, or take those of the living with it",
		run: permitsReturnAtLeaseEnd,
	},
	{
		name: "permits whose reply is lost count once", contract: 4, on: suite.OneAddress, permits: true,
		why: "a resent acquire that is counted twice loses permits for as long as anybody holds",
		run: lostPermitsCountOnce,
	},
	{
		name: "a release of permits whose reply is lost counts once", contract: 7, on: suite.OneAddress, permits: true,
		why: "a resent release that is counted twice grants the permits of others again",
		run: lostPermitsReturnOnce,
	},
	{
		name: "a resumed hold keeps its permits", contract: 11, on: suite.WithoutSentinel, permits: true,
		why: "permits that a resume forgets are granted twice or never again",
		run: resumedKeepsPermits,
	},
	{
		name: "a large request is not starved", contract: 12, on: suite.OnlyMemory, permits: true,
		needs: subscribes,
		why:   "small requests, which always fit, would pass a large one for ever",
		run:   largeIsNotStarved,
	},
	{
		name: "a release wakes all who fit", contract: 12, on: suite.WithoutSentinel, permits: true, needs: subscribes,
		why: "permits of a large holder would stay free while small requests wait",
		run: releaseWakesAllWhoFit,
	},
	{
		name: "waiters of a process hold permits together", contract: 13, on: suite.WithoutSentinel, permits: true,
		why: "a process whose waiters hold one after the other uses one permit",
		run: waitersHoldTogether,
	},
	{
		name: "each hold of permits has a higher token", contract: fencing, on: suite.WithoutSentinel, permits: true,
		why: "two holders with one token could not be told apart",
		run: permitTokensIncrease,
	},
}

// semaphore makes the semaphore under test over drv.
func (t *caseT) semaphore(drv driver.Driver, permits int) locker.Locker {
	t.Helper()
	newSemaphore := func(drv driver.Driver, permits int, bound Timeouts) (locker.Locker, error) {
		cfg := semaphore.Config{Permits: permits, AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release}
		return semaphore.New(drv, cfg)
	}
	if t.h.NewSemaphore != nil {
		newSemaphore = t.h.NewSemaphore
	}
	l, err := newSemaphore(drv, permits, t.timeouts())
	t.OK(err, "Harness.NewSemaphore")
	return t.wrap(l)
}

// permits acquires so many permits of a name for long, or fails the case.
func (t *caseT) permits(l locker.Locker, name string, permits int) *locker.Lock {
	t.Helper()
	return t.acquire(l, locker.Request{Name: name, TTL: long, Permits: permits})
}

// noPermits demands a refusal of so many permits of a name. It leaves no waiter.
func (t *caseT) noPermits(l locker.Locker, name string, permits int) {
	t.Helper()
	t.contended(l, locker.Request{Name: name, Permits: permits, NoWait: true})
}

// lockHasOnePermit is for semaphores too: their Locker has one permit.
func lockHasOnePermit(t *caseT) {
	l, name := t.direct(), t.Key()
	lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, Permits: 2})
	if lock != nil || !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, locker.ErrInvalid) {
		t.Errorf("Acquire of two permits of a lock: %v, %v; want ErrUnsupported, or ErrInvalid of a semaphore", lock,
			err)
	}
	_, err = l.Acquire(t.Ctx, locker.Request{Name: name, Permits: -1})
	t.Is(err, locker.ErrInvalid, "Acquire of -1 permits")
	t.gone(name, "after invalid requests")
	t.OK(t.permits(l, name, 1).Release(t.Ctx), "Release of one permit")
}

func permitsAreLimited(t *caseT) {
	a, b, name := t.semaphore(t.Driver(), 4), t.semaphore(t.Driver(), 4), t.Key()
	_, err := a.Acquire(t.Ctx, locker.Request{Name: name, Permits: 5})
	t.Is(err, locker.ErrInvalid, "Acquire of more permits than there are")
	one, two := t.permits(a, name, 1), t.permits(b, name, 2)
	t.noPermits(a, name, 2)
	last := t.permits(b, name, 1)
	t.noPermits(a, name, 1)
	t.noPermits(b, name, 1)
	t.OK(two.Release(t.Ctx), "Release of two permits")
	t.noPermits(a, name, 3)
	t.OK(one.Renew(t.Ctx, 0), "Renew")
	again := t.permits(a, name, 2)
	t.noPermits(b, name, 1)
	for _, lock := range []*locker.Lock{one, last, again} {
		t.held(lock)
		t.OK(lock.Release(t.Ctx), "Release")
	}
	t.gone(name, "after the last release")
	t.OK(t.permits(b, name, 4).Release(t.Ctx), "Release of all permits")
}

func inspectReportsPermits(t *caseT) {
	l, name := t.semaphore(t.Driver(), 5), t.Key()
	check := func(holds, free int) {
		state, err := locker.Inspect(t.Ctx, unwrap(l), name)
		t.OK(err, "Inspect")
		if state.Held != (holds > 0) || state.Holds != holds || state.Permits != 5 || state.Free != free {
			t.Errorf("the state is %+v, want %d holds and %d of 5 permits free", state, holds, free)
		}
	}
	check(0, 5)
	one, three := t.permits(l, name, 1), t.permits(l, name, 3)
	check(2, 1)
	t.OK(one.Release(t.Ctx), "Release")
	check(1, 2)
	t.OK(three.Release(t.Ctx), "Release")
	check(0, 5)
}

func twoLimitsAreAnError(t *caseT) {
	three, four, name := t.semaphore(t.Driver(), 3), t.semaphore(t.Driver(), 4), t.Key()
	lock := t.permits(three, name, 1)
	for _, l := range []locker.Locker{four, t.waiting(four, retry.Config{})} {
		other, err := l.Acquire(t.Ctx, locker.Request{Name: name})
		if err == nil || errors.Is(err, locker.ErrNotAcquired) || errors.Is(err, locker.ErrUnknownOutcome) ||
			driver.Transient(err) {
			t.Errorf("another limit: %v, %v; want an error that is neither contention nor passes", other, err)
		}
	}
	t.OK(lock.Renew(t.Ctx, 0), "Renew")
	t.OK(lock.Release(t.Ctx), "Release")
	t.OK(t.permits(four, name, 4).Release(t.Ctx), "Release")
}

func permitsReturnAtLeaseEnd(t *caseT) {
	l, name := t.semaphore(t.Driver(), 3), t.Key()
	lives := t.permits(l, name, 1)
	drv := t.Driver()
	dies := t.acquire(t.semaphore(drv, 3), locker.Request{Name: name, TTL: brief, Permits: 2})
	if t.h.Can.Renews {
		t.OK(drv.Close(), "Close of the holder's driver")
	}
	t.endsAtDeadline(dies)
	t.freeSoon(l, locker.Request{Name: name, TTL: long, Permits: 2, NoWait: true},
		"the permits of a holder that died are free")
	t.noPermits(l, name, 3)
	t.held(lives)
	t.covers(lives)
	t.OK(lives.Renew(t.Ctx, 0), "Renew of the hold that lives")
	t.OK(lives.Release(t.Ctx), "Release of it")
	t.gone(name, "after the last release")
}

// behindSemaphore makes a semaphore over a client behind a proxy. The server knows its scripts.
func (t *caseT) behindSemaphore(permits int) (*faultproxy.Proxy, locker.Locker) {
	t.Helper()
	p, drv := t.Proxied()
	l, name := t.semaphore(drv, permits), t.Key()
	lock := t.permits(l, name, 1)
	t.OK(lock.Renew(t.Ctx, 0), "Renew")
	t.OK(lock.Release(t.Ctx), "Release")
	return p, l
}

func lostPermitsCountOnce(t *caseT) {
	for _, fault := range t.noticed(answerLost) {
		p, l := t.behindSemaphore(4)
		name, other := t.Key(), t.semaphore(t.Driver(), 4)
		var locks []*locker.Lock
		for range 2 { // the first makes the key
			trap := p.Fail(name, fault)
			locks = append(locks, t.acquire(l, locker.Request{Name: name, TTL: faulty}))
			t.Event(trap.Hit(), "the fault happens")
			t.OK(locks[0].Renew(t.Ctx, long), "Renew")
		}
		rest := t.permits(other, name, 2)
		t.noPermits(other, name, 1)
		for _, lock := range append(locks, rest) {
			t.OK(lock.Release(t.Ctx), "Release")
		}
		t.gone(name, "after the last release")
	}
}

func lostPermitsReturnOnce(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		p, l := t.behindSemaphore(4)
		other, name := t.semaphore(t.Driver(), 4), t.Key()
		keeper, lock := t.permits(other, name, 2), t.permits(l, name, 1)
		trap := p.Fail(name, fault)
		err := t.Call("Release", func() error { return lock.Release(t.Ctx) })
		t.Event(trap.Hit(), "the fault happens")
		t.OK(err, "Release of one permit, %s", what)
		t.noPermits(other, name, 3)
		t.OK(t.permits(other, name, 2).Release(t.Ctx), "Release of the others")
		t.OK(keeper.Release(t.Ctx), "Release")
		t.gone(name, "after the last release")
	}
}

func resumedKeepsPermits(t *caseT) {
	l, name := t.semaphore(t.Driver(), 4), t.Key()
	lock := t.permits(l, name, 3)
	resumed, err := locker.Resume(t.Ctx, l, lock.Handle())
	t.OK(err, "Resume")
	t.releaseLater(resumed)
	t.noPermits(l, name, 2)
	one := t.permits(l, name, 1)
	t.noPermits(l, name, 1)
	_, err = l.Acquire(t.Ctx, locker.Request{Name: name, Resume: resumed.Handle(), Permits: 2})
	t.Is(err, locker.ErrInvalid, "a Resume with other permits")
	t.OK(resumed.Release(t.Ctx), "Release of the resumed hold")
	t.OK(t.permits(l, name, 3).Release(t.Ctx), "Release of three permits")
	t.OK(one.Release(t.Ctx), "Release of the last")
	t.gone(name, "after the last release")
}

// permitPlaces is places for requests of so many permits each of a semaphore of limit.
func (t *caseT) permitPlaces(name string, limit int, permits ...int) []*place {
	t.Helper()
	return t.placesOf(name, func(drv driver.Driver) locker.Locker { return t.semaphore(drv, limit) }, permits)
}

func largeIsNotStarved(t *caseT) {
	l, name := t.semaphore(t.Driver(), 3), t.Key()
	keeper, other := t.permits(l, name, 1), t.permits(l, name, 2)
	waiters := t.permitPlaces(name, 3, 3, 1)
	large, small := waiters[0], waiters[1]
	t.OK(other.Release(t.Ctx), "Release of two permits")
	large.refused()
	t.noPermits(l, name, 1)
	small.refused()
	large.refused()
	suite.Drain(large.sub)
	t.OK(keeper.Release(t.Ctx), "Release")
	t.Woken(large.sub, "the large request")
	lock := large.acquired()
	suite.Drain(small.sub)
	t.OK(lock.Release(t.Ctx), "Release of all permits")
	t.Woken(small.sub, "the small request")
	t.OK(small.acquired().Release(t.Ctx), "Release")
	t.gone(name, "after the last release")
}

func releaseWakesAllWhoFit(t *caseT) {
	l, name := t.semaphore(t.Driver(), 4), t.Key()
	all := t.permits(l, name, 4)
	waiters := t.permitPlaces(name, 4, 1, 2, 1, 1)
	var channels []string
	for _, p := range waiters {
		channels = append(channels, p.channel.Name())
	}
	heard := t.listenFor(name, channels...)
	t.OK(all.Release(t.Ctx), "Release of all permits")
	var locks []*locker.Lock
	for _, p := range waiters[:3] {
		t.Woken(p.sub, "a waiter that fits")
		locks = append(locks, p.acquired())
	}
	if got := heard.messages(); !slices.Equal(got, channels[:3]) {
		t.Errorf("messages were published on %q, want %q, in the order of the waiters that fit", got, channels[:3])
	}
	t.noPermits(l, name, 1)
	waiters[3].refused()
	t.OK(locks[1].Release(t.Ctx), "Release of two permits")
	t.Woken(waiters[3].sub, "the last waiter")
	for _, lock := range []*locker.Lock{waiters[3].acquired(), locks[0], locks[2]} {
		t.OK(lock.Release(t.Ctx), "Release")
	}
	t.gone(name, "after the last release")
}

func waitersHoldTogether(t *caseT) {
	l, name := t.waiting(t.semaphore(t.Driver(), 3), retry.Config{}), t.Key()
	all := t.permits(l, name, 3)
	var waiting []<-chan *locker.Lock
	for range 4 {
		waiting = append(waiting, t.wait(l, locker.Request{Name: name, TTL: long}))
	}
	t.OK(all.Release(t.Ctx), "Release of all permits")
	var locks []*locker.Lock
	for _, ch := range waiting[:3] {
		locks = append(locks, t.got(ch, "while the others hold"))
	}
	for _, lock := range locks {
		t.held(lock)
		t.OK(lock.Release(t.Ctx), "Release")
	}
	t.OK(t.got(waiting[3], "after the others").Release(t.Ctx), "Release")
	t.gone(name, "after the last release")
}

func permitTokensIncrease(t *caseT) {
	a, b, name := t.semaphore(t.Driver(), 6), t.semaphore(t.Driver(), 6), t.Key()
	var last int64
	var locks []*locker.Lock
	for range 6 {
		lock := t.acquire(a, locker.Request{Name: name, TTL: long, Fenced: true})
		if lock.Fence() <= last {
			t.Errorf("the fencing token went from %d to %d", last, lock.Fence())
		}
		last = lock.Fence()
		locks = append(locks, lock)
		a, b = b, a
	}
	for _, lock := range locks {
		t.OK(lock.Release(t.Ctx), "Release")
	}
	t.tenure(a, name, last)
}

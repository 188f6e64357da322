package conformance

import (
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
)

var renewalCases = []testCase{
	{
		name: "a renewed lock outlasts its TTL", contract: 9, on: suite.OnlyMemory, can: renews,
		why: "work that takes longer than the TTL must not lose its lock",
		run: renewedOutlasts,
	},
	{
		name: "a renewal that fails is tried again", contract: 9, on: suite.OnlyMemory, can: renews,
		why: "one lost packet must not cost a lock that has most of its lease left",
		run: failedRenewalIsRepeated,
	},
	{
		name: "a renewal that finds the lock gone ends it", contract: 9, on: suite.OnlyMemory, can: renews,
		why: "another may hold the lock by now: the holder must learn of it at once, and nothing may be restored",
		run: renewalFindsItGone,
	},
	{
		name: "an outage that lasts ends a renewed lock", contract: 10, on: suite.OnlyMemory, can: renews,
		why: "the holder must learn of it at the Deadline, and nothing may renew it afterwards, even if the key still exists",
		run: lastingOutageEnds,
	},
	{
		name: "a release ends the renewals", contract: 9, on: suite.OnlyMemory, can: renews,
		why: "a renewal that is sent or executed after the release could affect the next holder",
		run: releaseEndsRenewals,
	},
}

// watched is the TTL in cases that await renewals, in fake time.
const watched = 3 * time.Second

// renewed waits until a lock has been renewed that many times.
func (t *caseT) renewed(lock *locker.Lock, times int) {
	t.Helper()
	for range times {
		before := lock.Deadline()
		t.Eventually("the lock is renewed", func() bool { return lock.Deadline().After(before) })
	}
}

func renewedOutlasts(t *caseT) {
	l, other := t.direct(), t.direct()
	var locks []*locker.Lock
	for _, fenced := range []bool{false, true} {
		locks = append(locks, t.acquire(l, locker.Request{Name: t.Key(), TTL: watched, Fenced: fenced}))
	}
	t.Pause(10 * watched)
	for _, lock := range locks {
		t.held(lock)
		t.covers(lock)
		t.contended(other, locker.Request{Name: lock.Name()})
		t.OK(lock.Release(t.Ctx), "Release")
		t.free(other, lock.Name())
	}
}

func failedRenewalIsRepeated(t *caseT) {
	type disturbed struct {
		lock   *locker.Lock
		before time.Time
		trap   *faultproxy.Trap
	}
	var all []disturbed
	for _, fault := range t.noticed(faults) {
		p, l := t.behind()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: 10 * attemptTimeout})
		trap := p.Fail(lock.Name(), fault)
		all = append(all, disturbed{lock, lock.Deadline(), trap})
	}
	for _, d := range all {
		t.Event(d.trap.Hit(), "a fault happens to the renewal")
		t.Eventually("the lock is renewed after all", func() bool { return d.lock.Deadline().After(d.before) })
		t.held(d.lock)
		t.covers(d.lock)
		t.OK(d.lock.Release(t.Ctx), "Release")
	}
}

func renewalFindsItGone(t *caseT) {
	l, other := t.direct(), t.direct()
	gone := t.acquire(l, locker.Request{Name: t.Key(), TTL: watched})
	taken := t.acquire(l, locker.Request{Name: t.Key(), TTL: watched, Fenced: true})
	t.Do(gone.Name(), "DEL", gone.Name())
	t.Do(taken.Name(), "DEL", taken.Name())
	asked := time.Now()
	next := t.acquireExpiring(locker.Request{Name: taken.Name(), TTL: long, Fenced: true})
	for _, lock := range []*locker.Lock{gone, taken} {
		t.Event(lock.Done(), "the renewal ends the lock")
		if !time.Now().Before(lock.Deadline()) {
			t.Errorf("Done closed at the Deadline, %v after the renewal was due",
				time.Since(lock.Deadline().Add(-watched/3*2)))
		}
		t.lost(lock)
		t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release of a lock that is gone")
	}
	if t.Exists(gone.Name()) {
		t.Errorf("a renewal brought back a lock that was gone")
	}
	t.held(next)
	t.contended(other, locker.Request{Name: next.Name()})
	if left := t.PTTL(next.Name()); left > long || left < long-time.Since(asked)-2*time.Millisecond {
		t.Errorf("the next holder's lease of %v ends in %v", long, left)
	}
	t.Do(next.Name(), "DEL", next.Name()) // its driver is closed
}

func lastingOutageEnds(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: watched})
	sends := func() int { return p.Sent(lock.Name()) }
	t.renewed(lock, 1)
	outage := p.Add(faultproxy.Rule{Match: faultproxy.Contains(lock.Name()), Every: true, Fault: faultproxy.CutBefore})
	t.Do(lock.Name(), "PEXPIRE", lock.Name(), long.Milliseconds()) // the server's clock is behind
	t.endsAtDeadline(lock)
	outage.Release()

	witness := t.acquire(l, locker.Request{Name: t.Key(), TTL: watched})
	t.renewed(witness, 1)
	before := sends()
	t.renewed(witness, 3)
	if n := sends() - before; n > 0 {
		t.Errorf("%d commands were sent for a lock past its Deadline, while another was renewed three times", n)
	}
	t.OK(witness.Release(t.Ctx), "Release")
	t.lost(lock)
	t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release past the Deadline")
	t.gone(lock.Name(), "after Release past the Deadline, which must be sent")
}

func releaseEndsRenewals(t *caseT) {
	p, l := t.behind()
	other := t.direct()
	t.warmLocker(other)
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: watched})
	t.renewed(lock, 1)
	renewal := p.Fail(lock.Name(), faultproxy.StallRequest)
	t.Event(renewal.Hit(), "a renewal is held back")
	released := suite.Background(func() error { return lock.Release(t.Ctx) })
	t.Event(lock.Done(), "Done closes")
	t.Is(lock.Err(), locker.ErrReleased, "Err of a released lock")
	// A client with one connection sends the release behind the renewal: the next holder must not
	// wait for it.
	t.Do(lock.Name(), "DEL", lock.Name())
	asked := time.Now()
	next := t.acquire(other, locker.Request{Name: lock.Name(), TTL: long, Fenced: true})
	renewal.Release()
	t.Event(renewal.Executed(), "the renewal runs late")
	if err := t.Result(released, "Release"); err != nil {
		t.Is(err, locker.ErrLost, "Release of a lock that was taken away")
	}
	t.Is(lock.Err(), locker.ErrReleased, "Err after a late renewal")
	sends := func() int { return p.Sent(lock.Name()) }

	witness := t.acquire(l, locker.Request{Name: t.Key(), TTL: watched})
	t.renewed(witness, 1)
	before := sends()
	t.renewed(witness, 3)
	if n := sends() - before; n > 0 {
		t.Errorf("%d commands were sent for a released lock, while another was renewed three times", n)
	}
	t.OK(witness.Release(t.Ctx), "Release")
	t.held(next)
	t.contended(l, locker.Request{Name: next.Name()})
	if left := t.PTTL(next.Name()); left > long || left < long-time.Since(asked)-2*time.Millisecond {
		t.Errorf("the next holder's lease of %v ends in %v", long, left)
	}
	t.OK(next.Release(t.Ctx), "Release of the next holder")
}

package conformance

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var leaseCases = []testCase{
	{
		name: "a lease ends by itself", contract: 8, on: suite.OnlyMemory,
		why: "if the holder dies the lock must come free, but not before its Deadline",
		run: leaseEndsByItself,
	},
	{
		name: "the TTL is set as asked", contract: 8, on: suite.WithoutSentinel,
		why: "a key that expires before the Deadline lets another holder in; one that lives longer blocks everybody",
		run: ttlIsSetAsAsked,
	},
	{
		name: "an acquire never leaves a key without an expiry", contract: 8, on: suite.OneAddress, leaves: true,
		why: "SETNX followed by EXPIRE leaves a lock for ever if the holder dies between the two",
		run: acquireAlwaysExpires,
	},
	{
		name: "the loss of one lock is not taken for that of another", contract: 9, on: suite.WithoutSentinel,
		why: "a nested lock is used with the context of the outer one, and the cause of that context is the loss of the outer one",
		run: lossIsOfOneLock,
	},
	{
		name: "the error of another acquire is not taken for the outcome", contract: 4, on: suite.OneAddress,
		why: "when tasks share a context, the first that fails cancels it for all, with its error as the cause",
		run: causeIsNoOutcome,
	},
	{
		name: "renew extends", contract: 9, on: suite.WithoutSentinel,
		why: "long work needs it to keep its lock",
		run: renewExtends,
	},
	{
		name: "renew never shortens", contract: 9, on: suite.WithoutSentinel,
		why: "the lease would end before the Deadline that was reported",
		run: renewNeverShortens,
	},
	{
		name: "renew never revives", contract: 9, on: suite.WithoutSentinel,
		why: "after the end of a lease another may have acquired the lock",
		run: renewNeverRevives,
	},
	{
		name: "a lost lock stays lost", contract: 9, on: suite.OneAddress,
		why: "the holder has stopped its work, so a late reply must not make the lock held again, and nothing more is sent",
		run: lostStaysLost,
	},
	{
		name: "Done closes with the server frozen", contract: 10, on: suite.OnlyMemory,
		why: "a holder that is cut off learns from its own clock that its lease is over",
		run: doneClosesFrozen,
	},
	{
		name: "a lock past its Deadline is lost", contract: 9, on: suite.OnlyMemory, can: lapses,
		why: "the key may still exist on the server, but the holder was told that the lock is lost, so it must not be renewed",
		run: pastDeadlineIsLost,
	},
	{
		name: "Do holds the lock while it works", contract: 10, on: suite.AllKinds,
		why: "the work must be exclusive, and the lock free afterwards however the work ends",
		run: doHolds,
	},
	{
		name: "Do ends its work with the lease", contract: 10, on: suite.OnlyMemory,
		why: "the work's context must end at the loss, with that cause, and Do must report it after the work has returned",
		run: doEndsWithTheLease,
	},
	{
		name: "Do distinguishes an unknown release from a loss", contract: 10, on: suite.OnlyMemory,
		why: "the work was exclusive to its end; it is only unknown whether the lock is free by now",
		run: doDistinguishesUnknownFromLoss,
	},
}

// brief is the TTL of leases that a case waits out, in fake time.
const brief = time.Second

// endsAtDeadline demands that Done closes at the Deadline.
func (t *caseT) endsAtDeadline(lock *locker.Lock) {
	t.Helper()
	t.Event(lock.Done(), "Done closes at the Deadline")
	if late := time.Since(lock.Deadline()); late < 0 || late > latency {
		t.Errorf("Done closed %v after the Deadline", late)
	}
	t.lost(lock)
}

func leaseEndsByItself(t *caseT) {
	a, b, name := t.direct(), t.direct(), t.Key()
	first := t.acquireExpiring(locker.Request{Name: name, TTL: brief})
	t.covers(first)
	began := time.Now()
	t.endsAtDeadline(first)
	var second *locker.Lock
	t.Eventually("the lock comes free", func() (ok bool) {
		var err error
		if second, err = b.Acquire(t.Ctx, locker.Request{Name: name, TTL: long}); err != nil {
			t.Is(err, locker.ErrNotAcquired, "Acquire while another holds")
		}
		return err == nil
	})
	if took := time.Since(began); took > brief+50*suite.PollEvery {
		t.Errorf("the lock came free after %v, its TTL is %v", took, brief)
	}
	t.Is(first.Renew(t.Ctx, 0), locker.ErrLost, "Renew after the end")
	t.Is(first.Release(t.Ctx), locker.ErrLost, "Release after the end")
	t.contended(a, locker.Request{Name: name})
	t.OK(second.Release(t.Ctx), "Release of the next holder")
}

func ttlIsSetAsAsked(t *caseT) {
	l := t.direct()
	for _, ttl := range []time.Duration{
		0, 30 * time.Second, 35_001 * time.Millisecond, 90*time.Second + 999*time.Microsecond, locker.DefaultTTL,
		time.Hour, locker.MaxTTL,
	} {
		for _, fenced := range []bool{false, true} {
			began := time.Now()
			lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: ttl, Fenced: fenced})
			t.covers(lock)
			want := ttl.Truncate(time.Millisecond)
			if ttl == 0 {
				want = lock.TTL()
			}
			if lock.TTL() != want {
				t.Errorf("asked for a TTL of %v, Lock.TTL reports %v", ttl, lock.TTL())
			}
			t.Left(t.PTTL(lock.Name()), want, began, "the key of a lock with a TTL of %v", ttl)
			margin := want/100 + 2*time.Millisecond // for drift
			t.Left(time.Until(lock.Deadline()), want-margin, began, "the Deadline of a lock with a TTL of %v", ttl)
			t.OK(lock.Release(t.Ctx), "Release")
		}
	}
}

func acquireAlwaysExpires(t *caseT) {
	// Whichever command arrives last, the key it leaves must expire.
	for nth := 1; nth <= 3; nth++ {
		for _, fault := range []faultproxy.Fault{faultproxy.Cut, faultproxy.CutBefore} {
			for _, fenced := range []bool{false, true} {
				p, l := t.behind()
				name := t.Key()
				trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Nth: nth, Every: true, Fault: fault})
				ctx, cancel := context.WithCancel(t.Ctx)
				go func() {
					select {
					case <-trap.Hit():
						cancel()
					case <-ctx.Done(): // fewer commands were enough
					}
				}()
				lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: long, Fenced: fenced})
				cancel()
				if err == nil {
					t.covers(lock)
				}
				if left := t.PTTL(name); left == suite.NeverExpires {
					t.Errorf("with the connection gone at command %d, the key never expires", nth)
				}
			}
		}
	}
}

func renewExtends(t *caseT) {
	l := t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: time.Minute, Fenced: fenced})
		for _, ttl := range []time.Duration{long, 0, 2 * long} {
			before, began := lock.Deadline(), time.Now()
			t.OK(lock.Renew(t.Ctx, ttl), "Renew(%v)", ttl)
			t.held(lock)
			t.covers(lock)
			if ttl > 0 && !lock.Deadline().After(before) {
				t.Errorf("Renew(%v) did not move the Deadline", ttl)
			}
			switch left := t.PTTL(lock.Name()); {
			case ttl > 0:
				t.Left(left, ttl, began, "after Renew(%v) the key", ttl)
			case left > long:
				t.Errorf("after Renew(0) the key has %v left", left)
			}
			if lock.TTL() != time.Minute {
				t.Errorf("Renew changed the lock's own TTL to %v", lock.TTL())
			}
		}
		t.OK(lock.Release(t.Ctx), "Release")
	}
}

func renewNeverShortens(t *caseT) {
	l := t.direct()
	for _, fenced := range []bool{false, true} {
		began := time.Now()
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		before := lock.Deadline()
		t.OK(lock.Renew(t.Ctx, time.Minute), "Renew by a shorter TTL")
		if lock.Deadline().Before(before) {
			t.Errorf("Renew by a shorter TTL moved the Deadline back by %v", before.Sub(lock.Deadline()))
		}
		t.Left(t.PTTL(lock.Name()), long, began, "after Renew by a shorter TTL the key")
		t.covers(lock)
		t.OK(lock.Release(t.Ctx), "Release")
	}
}

func renewNeverRevives(t *caseT) {
	l := t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		t.Do(lock.Name(), "DEL", lock.Name())
		t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew of an expired lease")
		t.lost(lock)
		if t.Exists(lock.Name()) {
			t.Errorf("Renew brought an expired lease back")
		}
		t.free(l, lock.Name())
	}
}

func lostStaysLost(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	t.Do(lock.Name(), "RENAME", lock.Name(), lock.Name()+"{aside}")
	t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew of a lost lock")
	t.lost(lock)
	t.Do(lock.Name(), "RENAME", lock.Name()+"{aside}", lock.Name())
	t.sendsNothing(p, lock.Name(), func() { t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew of a lock that came back") })
	t.lost(lock)

	// A reply after Done changes nothing either.
	late := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(late.Name()), Fault: faultproxy.Stall, Every: true})
	renewed := suite.Background(func() error { return late.Renew(t.Ctx, long) })
	t.Event(trap.Hit(), "the renewal's answer is withheld")
	late.Hold().MarkLost(errors.New("found out otherwise"))
	trap.Release()
	t.Is(t.Result(renewed, "Renew"), locker.ErrLost, "Renew whose answer came after the loss")
	t.lost(late)
	t.Is(late.Release(t.Ctx), locker.ErrLost, "Release")
}

func lossIsOfOneLock(t *caseT) {
	l := t.direct()
	outer := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	inner := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	ctx, cancel := outer.Context(t.Ctx)
	defer cancel()
	outer.Hold().MarkLost(errors.New("found out otherwise"))
	t.Event(ctx.Done(), "the context of the outer lock ends")
	if err := inner.Renew(ctx, 0); err == nil || errors.Is(err, locker.ErrNotHeld) {
		t.Errorf("Renew under a context that has ended: %v", err)
	}
	t.OK(inner.Err(), "the inner lock")
	t.OK(inner.Release(ctx), "Release under that context")
	t.free(l, inner.Name())
	t.Is(outer.Release(t.Ctx), locker.ErrLost, "Release of the outer lock")
}

func causeIsNoOutcome(t *caseT) {
	p, l := t.behind()
	held := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	refused := t.contended(l, locker.Request{Name: held.Name()})
	for _, acquires := range []locker.Locker{l, t.waiting(l, retry.Config{Policy: never})} {
		name, acquire := t.abandonBecause(refused, p, acquires, false)
		acquire.Release()
		t.Eventually("the key of the abandoned acquire is removed", func() bool { return !t.Exists(name) })
	}
	t.OK(held.Release(t.Ctx), "Release")
}

func doneClosesFrozen(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: brief})
	told := make(chan error, 1)
	lock.AfterDone(func(err error) { told <- err })
	ctx, cancel := lock.Context(t.Ctx)
	defer cancel()
	p.Freeze()
	t.endsAtDeadline(lock)
	t.Is(t.Result(told, "AfterDone"), locker.ErrLost, "AfterDone")
	t.Event(ctx.Done(), "the lock's context ends")
	t.Is(context.Cause(ctx), locker.ErrLost, "the cause of the lock's context")
	t.sendsNothing(p, lock.Name(), func() { t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew after Done") })
	p.Thaw()
	t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release after Done")
}

func pastDeadlineIsLost(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: brief})
	t.Do(lock.Name(), "PEXPIRE", lock.Name(), long.Milliseconds()) // the server's clock is behind
	t.endsAtDeadline(lock)
	t.sendsNothing(p, lock.Name(), func() { t.Is(lock.Renew(t.Ctx, long), locker.ErrLost, "Renew past the Deadline") })
	t.Is(lock.Release(t.Ctx), locker.ErrLost, "Release past the Deadline")
	t.gone(lock.Name(), "after Release past the Deadline, which must be sent")
}

func doHolds(t *caseT) {
	l, other := t.direct(), t.direct()
	failed := errors.New("the work failed")
	for what, end := range map[string]func() error{
		"return":  func() error { return nil },
		"error":   func() error { return failed },
		"panic":   func() error { panic("the work panicked") },
		"Goexit":  func() error { runtime.Goexit(); return nil },
		"release": nil,
	} {
		name := t.Key()
		done := make(chan struct{})
		var err error
		var panicked any
		go func() {
			defer close(done)
			defer func() { panicked = recover() }()
			err = locker.Do(t.Ctx, l, locker.Request{Name: name, TTL: long},
				func(ctx context.Context, lock *locker.Lock) error {
					_, refused := other.Acquire(t.Ctx, locker.Request{Name: name}) // with ctx it would have the same owner
					if !errors.Is(refused, locker.ErrNotAcquired) {
						t.Errorf("%s: while Do works another acquire reports %v", what, refused)
					}
					if end == nil {
						return lock.Release(ctx)
					}
					return end()
				})
		}()
		t.Event(done, "Do ends")
		switch what {
		case "error":
			t.Is(err, failed, "Do")
			t.isNot(err, locker.ErrNotHeld, "Do")
		case "panic":
			if panicked != "the work panicked" {
				t.Errorf("Do swallowed a panic; recovered %v", panicked)
			}
		default:
			t.OK(err, "Do that ends by %s", what)
		}
		t.gone(name, "after Do, %s", what)
	}

	theirs := t.acquire(other, locker.Request{Name: t.Key(), TTL: long})
	ran, err := locker.Try(t.Ctx, l, locker.Request{Name: theirs.Name()},
		func(context.Context, *locker.Lock) error { return nil })
	if ran || err != nil {
		t.Errorf("Try of a lock that another holds: %v, %v; want false and no error", ran, err)
	}
	t.OK(theirs.Release(t.Ctx), "Release")
	ran, err = locker.Try(t.Ctx, l, locker.Request{Name: theirs.Name()},
		func(context.Context, *locker.Lock) error { return failed })
	if !ran || !errors.Is(err, failed) {
		t.Errorf("Try of a free lock: %v, %v; want true and the work's error", ran, err)
	}
}

func doEndsWithTheLease(t *caseT) {
	p, l := t.behind()
	failed := errors.New("the work noticed")
	var cause error
	returned := false
	done := suite.Background(func() error {
		return locker.Do(t.Ctx, l, locker.Request{Name: t.Key(), TTL: brief},
			func(ctx context.Context, lock *locker.Lock) error {
				p.Freeze()
				<-ctx.Done()
				cause = context.Cause(ctx)
				p.Thaw()
				returned = true
				return failed
			})
	})
	err := t.Result(done, "Do")
	if !returned {
		t.Errorf("Do did not wait for its work")
	}
	t.Is(cause, locker.ErrLost, "the cause by which the work was ended")
	t.Is(err, locker.ErrLost, "Do")
	t.Is(err, failed, "Do")
}

func doDistinguishesUnknownFromLoss(t *caseT) {
	p, l := t.behind()
	ctx, cancel := context.WithCancel(t.Ctx)
	done := suite.Background(func() error {
		return locker.Do(ctx, l, locker.Request{Name: t.Key(), TTL: faulty}, func(context.Context, *locker.Lock) error {
			p.Freeze()
			cancel() // one send is enough
			return nil
		})
	})
	err := t.Result(done, "Do")
	p.Thaw()
	t.Is(err, locker.ErrUnknownOutcome, "Do with a release of unknown outcome")
	t.isNot(err, locker.ErrLost, "Do with a release of unknown outcome")
}

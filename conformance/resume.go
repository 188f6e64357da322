package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

var resumeCases = []testCase{
	{
		name: "resume takes a hold over", contract: 11, on: suite.AllKinds,
		why: "a hold passes from process to process by its handle, and the previous Lock must lose it",
		run: resumeTakesOver,
	},
	{
		name: "resume of a lost hold is refused", contract: 11, on: suite.WithoutSentinel,
		why: "a handle must not restore a lock that was released, has expired or is held by another",
		run: resumeOfLostHold,
	},
	{
		name: "a resume compares the whole value", contract: 1, on: suite.WithoutSentinel, can: stringKey,
		why: "a value that only begins like the handle's belongs to another holder",
		run: resumeComparesWhole,
	},
	{
		name: "one of many resumes wins", contract: 11, on: suite.WithoutSentinel,
		why: "one hold must never be two Locks, however many processes have the handle",
		run: oneResumeWins,
	},
	{
		name: "a resume whose reply is lost succeeds", contract: 4, on: suite.OneAddress,
		why: "the token was replaced already: the resent command must find its own new one, not report a loss",
		run: lostResumeSucceeds,
	},
	{
		name: "an undone resume leaves the hold as it was", contract: 11, on: suite.AllKinds,
		why: "the Lock and the Handle that a failed resume was made from are all that is left of the hold",
		run: resumeIsUndone,
	},
	{
		name: "an abandoned resume is undone", contract: 11, on: suite.OneAddress,
		why: "the hold would stay, until its TTL, under a token that nobody knows",
		run: abandonedResumeIsUndone,
	},
	{
		name: "a hold is released by its handle", contract: 11, on: suite.AllKinds,
		why: "a service may release in another process than the one that acquired; it must end that hold and no other",
		run: handleReleases,
	},
	{
		name: "a release by handle whose reply is lost succeeds", contract: 7, on: suite.OneAddress,
		why: "when it is resent it finds nothing: that is its own success",
		run: lostHandleReleaseSucceeds,
	},
	{
		name: "a handle must fit its request", contract: 11, on: suite.WithoutSentinel,
		why: "a handle of another name or mode is a mistake, not a lost lock",
		run: handleMustFit,
	},
}

func resumeTakesOver(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		name := t.Key()
		old := t.acquire(a, locker.Request{Name: name, TTL: long, Owner: "first", Fenced: fenced})
		h, err := locker.ParseHandle(old.Handle().Encode())
		t.OK(err, "ParseHandle of an encoded Handle")
		lock, err := locker.Resume(t.Ctx, b, h)
		t.OK(err, "Resume")
		t.held(lock)
		t.covers(lock)
		if lock.Owner() != "first" || lock.TTL() != long || lock.Name() != name {
			t.Errorf("the resumed lock reports %v, TTL %v; want the owner and the TTL of the first", lock, lock.TTL())
		}
		if lock.Handle().Encode() == old.Handle().Encode() {
			t.Errorf("the resumed lock has the token of the one it was taken from")
		}
		if (lock.Fence() > old.Fence()) != fenced {
			t.Errorf("the fencing token was %d and is %d after Resume; fenced is %v", old.Fence(), lock.Fence(), fenced)
		}
		t.Is(old.Renew(t.Ctx, 0), locker.ErrLost, "Renew of the Lock that was taken over")
		t.lost(old)
		t.Is(old.Release(t.Ctx), locker.ErrLost, "Release of the Lock that was taken over")
		t.held(lock)
		t.contended(a, locker.Request{Name: name})
		t.OK(lock.Renew(t.Ctx, 0), "Renew of the resumed Lock")
		t.OK(lock.Release(t.Ctx), "Release of the resumed Lock")
		t.free(a, name)
	}
	t.lostTo("release", "another took the hold over, unaware of it", func() (*locker.Lock, func()) {
		old := t.acquire(a, locker.Request{Name: t.Key(), TTL: long})
		lock, err := locker.Resume(t.Ctx, b, old.Handle())
		t.OK(err, "Resume")
		return old, func() { t.OK(lock.Release(t.Ctx), "Release") }
	})
}

func handleReleases(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		lock := t.acquire(a, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		h, err := locker.ParseHandle(lock.Handle().Encode())
		t.OK(err, "ParseHandle of an encoded Handle")
		ctx := t.Ctx
		if _, direct := lease.Find[handleReleaser](b); direct { // else ctx ends the resumed hold
			ctx = t.canceled()
		}
		t.released(h.Release(ctx, b), lock.Name(), "ReleaseHandle")
		t.Is(lock.Renew(t.Ctx, 0), locker.ErrLost, "Renew after ReleaseHandle")
		next := t.acquire(a, locker.Request{Name: lock.Name(), TTL: long})
		err = h.Release(t.Ctx, b)
		t.Is(err, locker.ErrNotHeld, "ReleaseHandle of a hold that has ended")
		t.isNot(err, locker.ErrLost, "ReleaseHandle of a hold that has ended")
		t.contended(b, locker.Request{Name: lock.Name()})
		t.OK(next.Release(t.Ctx), "Release of the next holder")
	}
}

func lostHandleReleaseSucceeds(t *caseT) {
	p, l := t.behind()
	lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long})
	trap := p.Fail(lock.Name(), faultproxy.Cut)
	t.OK(lock.Handle().Release(t.Ctx, l), "ReleaseHandle whose reply is cut off")
	t.Event(trap.Hit(), "the fault happens")
	t.gone(lock.Name(), "after ReleaseHandle")
}

func resumeOfLostHold(t *caseT) {
	l := t.direct()
	for what, end := range map[string]func(*locker.Lock){
		"released": func(lock *locker.Lock) { t.OK(lock.Release(t.Ctx), "Release") },
		"expired":  func(lock *locker.Lock) { t.Do(lock.Name(), "DEL", lock.Name()) },
		"another's": func(lock *locker.Lock) {
			t.OK(lock.Release(t.Ctx), "Release")
			t.acquire(l, locker.Request{Name: lock.Name(), TTL: long})
		},
		"resumed": func(lock *locker.Lock) {
			resumed, err := locker.Resume(t.Ctx, l, lock.Handle())
			t.OK(err, "Resume")
			t.releaseLater(resumed)
		},
	} {
		for _, fenced := range []bool{false, true} {
			lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
			end(lock)
			there := t.Exists(lock.Name())
			again, err := locker.Resume(t.Ctx, l, lock.Handle())
			if again != nil {
				t.Errorf("%s: Resume returned a lock", what)
			}
			t.Is(err, locker.ErrNotHeld, "Resume of what is %s", what)
			t.isNot(err, locker.ErrNotAcquired, "Resume of what is %s", what)
			if t.Exists(lock.Name()) != there {
				t.Errorf("%s: Resume changed whether there is a key", what)
			}
		}
	}
}

func resumeComparesWhole(t *caseT) {
	l := t.direct()
	for what, change := range almostOurs {
		name := t.Key()
		h := t.acquire(l, locker.Request{Name: name, TTL: long}).Handle()
		value, _ := t.Stored(name)
		theirs := change(value)
		t.Do(name, "SET", name, theirs, "PX", foreign.Milliseconds())
		_, err := locker.Resume(t.Ctx, l, h)
		t.Is(err, locker.ErrNotHeld, "Resume where a %s value is stored", what)
		if v, _ := t.Stored(name); v != theirs || t.PTTL(name) > foreign {
			t.Errorf("Resume took a %s value for its own: now %q for %v", what, v, t.PTTL(name))
		}
	}
}

func oneResumeWins(t *caseT) {
	lockers := []locker.Locker{t.direct(), t.direct()}
	name := t.Key()
	h := t.acquire(lockers[0], locker.Request{Name: name, TTL: long}).Handle()
	var wg sync.WaitGroup
	var won atomic.Pointer[locker.Lock]
	var wins atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			lock, err := locker.Resume(t.Ctx, lockers[i%2], h)
			switch {
			case err == nil:
				wins.Add(1)
				won.Store(lock)
			case !errors.Is(err, locker.ErrNotHeld):
				t.Errorf("Resume: %v", err)
			}
		})
	}
	wg.Wait()
	if n := wins.Load(); n != 1 {
		t.Fatalf("%d of 8 resumes of one handle succeeded, want 1", n)
	}
	t.OK(won.Load().Release(t.Ctx), "Release of the winner")
}

func lostResumeSucceeds(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		for _, fenced := range []bool{false, true} {
			p, l := t.behind()
			old := t.acquire(l, locker.Request{Name: t.Key(), TTL: faulty, Fenced: fenced})
			warm, err := locker.Resume(t.Ctx, l, old.Handle())
			t.OK(err, "Resume")
			trap := p.Fail(old.Name(), fault)
			lock, err := locker.Resume(t.Ctx, l, warm.Handle())
			t.Event(trap.Hit(), "the fault happens")
			t.OK(err, "Resume whose reply is %s", what)
			t.held(lock)
			t.covers(lock)
			if fenced && lock.Fence() <= warm.Fence() {
				t.Errorf("%s: the fencing token went from %d to %d", what, warm.Fence(), lock.Fence())
			}
			t.Is(warm.Renew(t.Ctx, 0), locker.ErrLost, "Renew of the Lock that was taken over")
			t.OK(lock.Release(t.Ctx), "Release")
		}
	}
}

// resumeIsUndone undoes a resume, as a quorum that missed it does. A strategy may do without.
func resumeIsUndone(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		old := t.acquire(a, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		resumed, err := locker.Resume(t.Ctx, b, old.Handle())
		t.OK(err, "Resume")
		resumed.Hold().Wrap(func(inner lease.Lease) lease.Lease {
			_, err = inner.Do(t.Ctx, lease.Op{Kind: lease.OpUndo})
			return inner
		})
		if errors.Is(err, errors.ErrUnsupported) {
			t.OK(resumed.Release(t.Ctx), "Release")
			continue
		}
		t.OK(err, "OpUndo of a resume")
		t.Is(resumed.Renew(t.Ctx, 0), locker.ErrLost, "Renew of the Lock whose resume was undone")
		t.Is(resumed.Release(t.Ctx), locker.ErrLost, "Release of the Lock whose resume was undone")
		t.contended(b, locker.Request{Name: old.Name()})
		t.covers(old)
		t.OK(old.Renew(t.Ctx, 0), "Renew of the Lock that the resume was made from")
		t.held(old)
		again, err := locker.Resume(t.Ctx, b, old.Handle())
		t.OK(err, "Resume by the same Handle")
		if fenced && again.Fence() <= resumed.Fence() {
			t.Errorf("the fencing token was %d, and is %d after another resume", resumed.Fence(), again.Fence())
		}
		t.OK(again.Release(t.Ctx), "Release")
		t.free(a, old.Name())
	}
}

func abandonedResumeIsUndone(t *caseT) {
	p, l := t.behind()
	direct := t.direct()
	for _, fenced := range []bool{false, true} {
		h := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced}).Handle()
		warm, err := locker.Resume(t.Ctx, l, h)
		t.OK(err, "Resume")
		resume := p.Add(faultproxy.Rule{Match: faultproxy.Contains(warm.Name()), Fault: faultproxy.Stall, Every: true})
		ctx, cancel := context.WithCancel(t.Ctx)
		result := suite.Background(func() error {
			_, err := locker.Resume(ctx, l, warm.Handle())
			return err
		})
		t.Event(resume.Executed(), "the resume runs, and its reply is held back")
		cancel()
		err = t.Result(result, "a cancelled Resume")
		resume.Release()
		t.Is(err, locker.ErrUnknownOutcome, "a cancelled Resume")
		var again *locker.Lock
		t.Eventually("the Handle works again", func() bool {
			again, err = locker.Resume(t.Ctx, direct, warm.Handle())
			return err == nil
		})
		t.held(again)
		t.OK(again.Renew(t.Ctx, 0), "Renew")
		t.OK(again.Release(t.Ctx), "Release")
	}
}

func handleMustFit(t *caseT) {
	l, name := t.direct(), t.Key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: time.Minute})
	_, err := l.Acquire(t.Ctx, locker.Request{Name: name + "x", Resume: lock.Handle()})
	t.Is(err, locker.ErrInvalid, "Resume under another name")
	_, err = l.Acquire(t.Ctx, locker.Request{Name: name, Mode: locker.Shared, Resume: lock.Handle()})
	t.Is(err, locker.ErrInvalid, "Resume in another mode")
	_, err = locker.Resume(t.Ctx, l, locker.Handle{})
	t.Is(err, locker.ErrInvalid, "Resume of the zero Handle")
	t.held(lock)
	t.OK(lock.Release(t.Ctx), "Release")
}

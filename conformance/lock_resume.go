package conformance

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
)

var resumeCases = []testCase{
	{
		name: "resume takes a hold over", contract: 11, on: anywhere,
		why: "a hold passes from process to process by its handle, and the one it was taken from must lose it",
		run: resumeTakesOver,
	},
	{
		name: "resume of what is gone is refused", contract: 11, on: everywhere,
		why: "a handle must not bring back a lock that was released, expired, or is another's by now",
		run: resumeOfWhatIsGone,
	},
	{
		name: "a resume compares whole", contract: 1, on: everywhere, can: stringKey,
		why: "a value that begins like the handle's is another's",
		run: resumeComparesWhole,
	},
	{
		name: "one of many resumes wins", contract: 11, on: everywhere,
		why: "one hold must never be two Locks, however many have the handle",
		run: oneResumeWins,
	},
	{
		name: "a resume whose reply is lost succeeds", contract: 4, on: proxied,
		why: "the token was replaced already: sent again it must find its own new one, not report the lock gone",
		run: lostResumeSucceeds,
	},
	{
		name: "a handle must fit its request", contract: 11, on: everywhere,
		why: "a handle of another name or mode is a mistake, not a lock that is gone",
		run: handleMustFit,
	},
}

func resumeTakesOver(t *caseT) {
	a, b := t.direct(), t.direct()
	for _, fenced := range []bool{false, true} {
		name := t.key()
		old := t.acquire(a, locker.Request{Name: name, TTL: long, Owner: "first", Fenced: fenced})
		h, err := locker.ParseHandle(old.Handle().Encode())
		t.ok(err, "ParseHandle of an encoded Handle")
		lock, err := locker.Resume(t.ctx, b, h)
		t.ok(err, "Resume")
		t.held(lock)
		t.covers(lock)
		if lock.Owner() != "first" || lock.TTL() != long || lock.Name() != name {
			t.Errorf("the resumed lock says %v, TTL %v; want the owner and the TTL of the first", lock, lock.TTL())
		}
		if lock.Handle().Encode() == old.Handle().Encode() {
			t.Errorf("the resumed lock has the token of the one it was taken from")
		}
		if (lock.Fence() > old.Fence()) != fenced {
			t.Errorf("the fencing token was %d and is %d after Resume; fenced is %v", old.Fence(), lock.Fence(), fenced)
		}
		t.is(old.Renew(t.ctx, 0), locker.ErrLost, "Renew of the Lock that was taken over")
		t.lost(old)
		t.is(old.Release(t.ctx), locker.ErrLost, "Release of the Lock that was taken over")
		t.held(lock)
		t.contended(a, locker.Request{Name: name})
		t.ok(lock.Renew(t.ctx, 0), "Renew of the resumed Lock")
		t.ok(lock.Release(t.ctx), "Release of the resumed Lock")
		t.free(a, name)
	}
	t.lostTo("release", "another took the hold over, unaware of it", func() (*locker.Lock, func()) {
		old := t.acquire(a, locker.Request{Name: t.key(), TTL: long})
		lock, err := locker.Resume(t.ctx, b, old.Handle())
		t.ok(err, "Resume")
		return old, func() { t.ok(lock.Release(t.ctx), "Release") }
	})
}

func resumeOfWhatIsGone(t *caseT) {
	l := t.direct()
	for what, end := range map[string]func(*locker.Lock){
		"released": func(lock *locker.Lock) { t.ok(lock.Release(t.ctx), "Release") },
		"expired":  func(lock *locker.Lock) { t.do(lock.Name(), "DEL", lock.Name()) },
		"another's": func(lock *locker.Lock) {
			t.ok(lock.Release(t.ctx), "Release")
			t.acquire(l, locker.Request{Name: lock.Name(), TTL: long})
		},
		"resumed": func(lock *locker.Lock) {
			resumed, err := locker.Resume(t.ctx, l, lock.Handle())
			t.ok(err, "Resume")
			t.endsLater(resumed)
		},
	} {
		for _, fenced := range []bool{false, true} {
			lock := t.acquire(l, locker.Request{Name: t.key(), TTL: long, Fenced: fenced})
			end(lock)
			there := t.exists(lock.Name())
			again, err := locker.Resume(t.ctx, l, lock.Handle())
			if again != nil {
				t.Errorf("%s: Resume gave a lock", what)
			}
			t.is(err, locker.ErrNotHeld, "Resume of what is %s", what)
			t.isNot(err, locker.ErrNotAcquired, "Resume of what is %s", what)
			if t.exists(lock.Name()) != there {
				t.Errorf("%s: Resume changed whether there is a key", what)
			}
		}
	}
}

func resumeComparesWhole(t *caseT) {
	l := t.direct()
	for what, change := range almostOurs {
		name := t.key()
		h := t.acquire(l, locker.Request{Name: name, TTL: long}).Handle()
		value, _ := t.stored(name)
		theirs := change(value)
		t.do(name, "SET", name, theirs, "PX", 20_000)
		_, err := locker.Resume(t.ctx, l, h)
		t.is(err, locker.ErrNotHeld, "Resume where a %s value is stored", what)
		if v, _ := t.stored(name); v != theirs || t.pttl(name) > 20*time.Second {
			t.Errorf("Resume took a %s value for its own: now %q for %v", what, v, t.pttl(name))
		}
	}
}

func oneResumeWins(t *caseT) {
	lockers := []locker.Locker{t.direct(), t.direct()}
	name := t.key()
	h := t.acquire(lockers[0], locker.Request{Name: name, TTL: long}).Handle()
	var wg sync.WaitGroup
	var won atomic.Pointer[locker.Lock]
	var wins atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			lock, err := locker.Resume(t.ctx, lockers[i%2], h)
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
	t.ok(won.Load().Release(t.ctx), "Release of the winner")
}

func lostResumeSucceeds(t *caseT) {
	for what, fault := range answerLost {
		for _, fenced := range []bool{false, true} {
			p, l := t.behind()
			old := t.acquire(l, locker.Request{Name: t.key(), TTL: faulty, Fenced: fenced})
			warm, err := locker.Resume(t.ctx, l, old.Handle())
			t.ok(err, "Resume")
			trap := p.Add(faultproxy.Rule{Match: faultproxy.Contains(old.Name()), Fault: fault})
			lock, err := locker.Resume(t.ctx, l, warm.Handle())
			t.event(trap.Hit(), "the fault happens")
			t.ok(err, "Resume whose reply is %s", what)
			t.held(lock)
			t.covers(lock)
			if fenced && lock.Fence() <= warm.Fence() {
				t.Errorf("%s: the fencing token went from %d to %d", what, warm.Fence(), lock.Fence())
			}
			t.is(warm.Renew(t.ctx, 0), locker.ErrLost, "Renew of the Lock that was taken over")
			t.ok(lock.Release(t.ctx), "Release")
		}
	}
}

func handleMustFit(t *caseT) {
	l, name := t.direct(), t.key()
	lock := t.acquire(l, locker.Request{Name: name, TTL: time.Minute})
	_, err := l.Acquire(t.ctx, locker.Request{Name: name + "x", Resume: lock.Handle()})
	t.is(err, locker.ErrInvalid, "Resume under another name")
	_, err = l.Acquire(t.ctx, locker.Request{Name: name, Mode: locker.Shared, Resume: lock.Handle()})
	t.is(err, locker.ErrInvalid, "Resume in another mode")
	_, err = locker.Resume(t.ctx, l, locker.Handle{})
	t.is(err, locker.ErrInvalid, "Resume of the zero Handle")
	t.held(lock)
	t.ok(lock.Release(t.ctx), "Release")
}

package conformance

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/middleware/retry"
)

var acquireOutcomeCases = []testCase{
	{
		name: "an acquire is one command", contract: 4, on: suite.OnlyMemory,
		why: "one round trip is what an uncontended lock may cost, fenced or not",
		run: acquireIsOneCommand,
	},
	{
		name: "an acquire whose reply is lost succeeds", contract: 4, on: suite.OneAddress,
		why: "resent with the same token it finds its own hold; \"held by another\" would lock everybody out for a TTL",
		run: lostAcquireSucceeds,
	},
	{
		name: "an acquire that never arrived succeeds", contract: 4, on: suite.OneAddress,
		why: "it cannot be told from a lost reply, and resending is right for both",
		run: cutAcquireSucceeds,
	},
	{
		name: "a slow reply is waited for", contract: 4, on: suite.OnlyMemory,
		why: "a reply within the attempt's time needs no second send",
		run: slowAcquireSucceeds,
	},
	{
		name: "a contended acquire whose reply is lost is refused", contract: 4, on: suite.OneAddress,
		why: "the second reply counts: held by another is contention, even after a fault",
		run: lostContentionIsRefused,
	},
	{
		name: "an outage is not contention", contract: 4, on: suite.OneAddress, leaves: true,
		why: "a caller that takes an outage for contention waits for a release that never comes, or skips work that nobody does",
		run: outageIsNotContention,
	},
	{
		name: "an acquire that does not wait is bounded", contract: 4, on: suite.OnlyMemory,
		why: "a caller with NoWait has no time: a server that does not answer must not take half a minute of it",
		run: noWaitIsBounded,
	},
	{
		name: "a refused acquire has a known outcome", contract: 6, on: suite.OnlyMemory, own: true,
		why: "after READONLY or OOM nothing was stored: the outcome is known, and there is no clean-up and no resend",
		run: refusedIsKnown,
	},
	{
		name: "an unknown server error leaves the outcome unknown", contract: 6, on: suite.OnlyMemory, own: true,
		why: "an unknown error may have come after the write, so the key must be cleaned up",
		run: unknownErrorLeavesUnknown,
	},
	{
		name: "TRYAGAIN is transient", contract: 6, on: suite.OnlyMemory, own: true,
		why: "a slot that is being moved replies so for a moment, and no lock should fail because of it",
		run: tryAgainIsTransient,
	},
}

// faulty is the TTL of locks in faults. It leaves time for many sends without a reply.
const faulty = 5 * time.Minute

// answerLost are the faults of a command that is executed, but not answered.
var answerLost = map[string]faultproxy.Fault{"dropped": faultproxy.DropReply, "cut off": faultproxy.Cut,
	"cut within": faultproxy.CutWithin, "withheld": faultproxy.Stall}

// faults are all faults of one command.
var faults = map[string]faultproxy.Fault{
	"dropped": faultproxy.DropReply, "cut off": faultproxy.Cut, "cut within": faultproxy.CutWithin, "withheld": faultproxy.Stall,
	"cut before": faultproxy.CutBefore,
}

// noticed returns the faults that end a command before its timeout. In fake time it returns all:
// timeouts cost nothing there.
func (t *caseT) noticed(faults map[string]faultproxy.Fault) map[string]faultproxy.Fault {
	if t.InFakeTime() {
		return faults
	}
	faults = maps.Clone(faults)
	maps.DeleteFunc(faults, func(_ string, f faultproxy.Fault) bool {
		return f == faultproxy.DropReply || f == faultproxy.Stall
	})
	return faults
}

func acquireIsOneCommand(t *caseT) {
	p, l := t.behind()
	for _, fenced := range []bool{false, true} {
		name, before := t.Key(), 0
		sent := func() (n int) {
			n, before = p.Sent(name)-before, p.Sent(name)
			return n
		}
		lock := t.acquire(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
		if n := sent(); n != 1 {
			t.Errorf("an uncontended acquire sent %d commands, want 1 (fenced is %v)", n, fenced)
		}
		t.contended(l, locker.Request{Name: name, TTL: long, Fenced: fenced})
		if n := sent(); n > 2 {
			t.Errorf("a refused acquire sent %d commands, want 2 at most (fenced is %v)", n, fenced)
		}
		t.OK(lock.Renew(t.Ctx, 0), "Renew")
		t.OK(lock.Release(t.Ctx), "Release")
		if n := sent(); n != 2 {
			t.Errorf("a renewal and a release sent %d commands, want 2 (fenced is %v)", n, fenced)
		}
	}
}

// acquireThrough acquires through a fault, and returns the time of the fault.
func (t *caseT) acquireThrough(fault faultproxy.Fault, fenced bool) (l locker.Locker, lock *locker.Lock,
	hit time.Time) {
	t.Helper()
	p, l := t.behind()
	name := t.Key()
	trap := p.Fail(name, fault)
	at := t.hitAt(trap)
	lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: faulty, Fenced: fenced})
	if hit = <-at; hit.IsZero() {
		t.Fatalf("the fault did not happen")
	}
	t.OK(err, "Acquire through a fault")
	t.held(lock)
	t.covers(lock)
	if (lock.Fence() > 0) != fenced {
		t.Errorf("the fencing token is %d; fenced is %v", lock.Fence(), fenced)
	}
	if n := p.Sent(name); n < 2 {
		t.Errorf("%d commands were sent; the first was not answered, so that the lock must be a guess", n)
	}
	return l, lock, hit
}

func lostAcquireSucceeds(t *caseT) {
	for what, fault := range t.noticed(answerLost) {
		for _, fenced := range []bool{false, true} {
			l, lock, hit := t.acquireThrough(fault, fenced)
			// The first send acquired the lock, so the lease counts from it.
			if latest := hit.Add(faulty - faulty/100); lock.Deadline().After(latest) {
				t.Errorf("%s: the Deadline is %v too late: it counts from a later send than the one that won", what,
					lock.Deadline().Sub(latest))
			}
			if fenced && t.counter(lock.Name()) != lock.Fence() {
				t.Errorf("%s: the fencing token is %d, the counter is at %d", what, lock.Fence(),
					t.counter(lock.Name()))
			}
			t.contended(t.direct(), locker.Request{Name: lock.Name()})
			t.OK(lock.Release(t.Ctx), "Release of a lock whose acquire was %s: one must be enough", what)
			t.free(l, lock.Name())
		}
	}
}

func cutAcquireSucceeds(t *caseT) {
	for _, fenced := range []bool{false, true} {
		l, lock, _ := t.acquireThrough(faultproxy.CutBefore, fenced)
		t.OK(lock.Release(t.Ctx), "Release")
		t.free(l, lock.Name())
	}
}

func slowAcquireSucceeds(t *caseT) {
	const slow = attemptTimeout * 9 / 10
	p, l := t.behind()
	name := t.Key()
	p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Fault: faultproxy.Delay, By: slow})
	began := time.Now()
	lock := t.acquire(l, locker.Request{Name: name, TTL: long})
	t.took(began, slow, "Acquire with a slow reply")
	if late := lock.Deadline().Sub(began.Add(long - long/100 + latency)); late > 0 {
		t.Errorf("the Deadline is %v too late: it counts from the reply, not from the send", late)
	}
	t.covers(lock)
	t.SentOnce(p, name, "Acquire with a slow reply")
	t.OK(lock.Release(t.Ctx), "Release")
}

// hitAt returns a channel with the time of a trap's hit. It is closed if the case ends first.
func (t *caseT) hitAt(trap *faultproxy.Trap) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		defer close(at)
		select {
		case <-trap.Hit():
			at <- time.Now()
		case <-t.Ctx.Done():
		}
	}()
	return at
}

func lostContentionIsRefused(t *caseT) {
	for _, fault := range t.noticed(answerLost) {
		p, l := t.behind()
		name := t.Key()
		theirs := t.acquire(t.direct(), locker.Request{Name: name, TTL: long})
		trap := p.Fail(name, fault)
		t.contended(l, locker.Request{Name: name, TTL: faulty})
		t.Event(trap.Hit(), "the fault happens")
		t.OK(theirs.Release(t.Ctx), "Release of the holder")
	}
}

func outageIsNotContention(t *caseT) {
	p, l := t.behind()
	t.goesDown(p, l)
	t.OK(p.Accept(), "take connections again")
	name := t.Key()
	t.freeSoon(l, locker.Request{Name: name, TTL: long}, "Acquire works again")

	_, err := t.unanswered(p, name, faultproxy.StallRequest, "Acquire", func(ctx context.Context) error {
		_, err := l.Acquire(ctx, locker.Request{Name: name, TTL: long})
		return err
	})
	t.notContention(err, "no answer")
	t.Is(err, locker.ErrUnknownOutcome, "Acquire without an answer")
	t.Is(err, context.Canceled, "Acquire without an answer")
}

// noWaitIsBounded makes attempts on a frozen server.
func noWaitIsBounded(t *caseT) {
	p, bare := t.behind()
	held := t.acquire(bare, locker.Request{Name: t.Key(), TTL: long})
	p.Freeze()
	ctx := context.WithoutCancel(t.Ctx)
	const wait = attemptTimeout / 2
	for what, req := range map[string]locker.Request{
		"NoWait":                 {NoWait: true},
		"NoWait with a deadline": {NoWait: true},
		"NoWait with MaxWait":    {NoWait: true, MaxWait: wait},
		"MaxWait":                {MaxWait: wait},
		"a resume with MaxWait":  {Resume: held.Handle(), MaxWait: wait},
	} {
		for where, l := range map[string]locker.Locker{"": bare, ", through retry": t.waiting(bare, retry.Config{})} {
			what += where
			req.Name = held.Name()
			if req.Resume.IsZero() {
				req.Name = t.Key()
			}
			ctx, cancel := ctx, func() {}
			if strings.HasPrefix(what, "NoWait with a deadline") {
				ctx, cancel = context.WithTimeout(ctx, 5*attemptTimeout)
			}
			began := time.Now()
			err := t.Result(acquiring(ctx, l, req), what)
			cancel()
			if req.MaxWait > 0 {
				t.took(began, wait, "%s", what)
				t.Is(err, locker.ErrMaxWait, "%s", what)
			} else if took := time.Since(began); took > attemptTimeout+latency {
				t.Errorf("%s took %v, want no more than the bound of a send, %v", what, took, attemptTimeout)
			}
			t.notContention(err, what)
			// A command waiting for a connection, or for another caller's load of its script, was never
			// sent.
			if !errors.Is(err, locker.ErrUnknownOutcome) && !errors.Is(err, driver.ErrNotSent) {
				t.Errorf("%s: %v, want an unknown outcome, or a command that was not sent", what, err)
			}
		}
	}
	p.Thaw()
	t.OK(held.Release(t.Ctx), "Release")
}

// goesDown makes p refuse connections, and waits until l has found its old ones closed. It returns
// the name of an unsent acquire.
func (t *caseT) goesDown(p *faultproxy.Proxy, l locker.Locker) (name string) {
	t.Helper()
	p.Refuse()
	p.CutAll()
	patience := t.Limit / 600
	t.Eventually("Acquire reports that nothing was sent", func() bool {
		name, patience = t.Key(), 2*patience
		ctx, cancel := context.WithTimeout(t.Ctx, patience) // on an old connection the outcome is unknown
		defer cancel()
		lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: faulty})
		if lock != nil || err == nil {
			t.Fatalf("Acquire without a server: %v, %v", lock, err)
		}
		t.notContention(err, "connection refused")
		return errors.Is(err, driver.ErrNotSent) && !errors.Is(err, locker.ErrUnknownOutcome)
	})
	return name
}

func refusedIsKnown(t *caseT) {
	p, l := t.behind()
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory", "READONLY You can't write against a read only replica.",
		"OOM command not allowed when used memory > 'maxmemory'.", "NOREPLICAS Not enough good replicas to write.",
		"MASTERDOWN Link with MASTER is down", "CLUSTERDOWN Hash slot not served",
		"BUSY Redis is busy running a script.",
		"NOPERM this user has no permissions", "NOAUTH Authentication required.",
		"CROSSSLOT Keys in request don't hash to the same slot", "ERR unknown command 'EVALSHA'",
		"ERR max number of clients reached",
	} {
		for _, fenced := range []bool{false, true} {
			name, code := t.Key(), (&driver.ServerError{Text: text}).Code()
			t.Server.Mini.SetError(text)
			lock, err := l.Acquire(t.Ctx, locker.Request{Name: name, TTL: faulty, Fenced: fenced})
			t.Server.Mini.SetError("")
			if lock != nil || driver.CodeOf(err) != code {
				t.Errorf("Acquire on %s: %v, %v; want the server's error", code, lock, err)
			}
			t.notContention(err, code)
			t.isNot(err, locker.ErrUnknownOutcome, "Acquire on %s", code)
			t.SentOnce(p, name, "Acquire on "+code)
		}
	}
}

func unknownErrorLeavesUnknown(t *caseT) {
	_, l := t.behind()
	for _, fenced := range []bool{false, true} {
		name := t.Key()
		t.Server.Mini.SetError("ERR something that nobody has heard of")
		ctx, cancel := context.WithTimeout(t.Ctx, attemptTimeout/3)
		lock, err := l.Acquire(ctx, locker.Request{Name: name, TTL: long, Fenced: fenced})
		cancel()
		if lock != nil {
			t.Errorf("Acquire on an unknown error returned a lock")
		}
		t.Is(err, locker.ErrUnknownOutcome, "Acquire on an unknown error")
		t.notContention(err, "unknown error")
		t.Server.Mini.SetError("")
		t.freeSoon(l, locker.Request{Name: name, TTL: long}, "the lock can be acquired")
	}
}

func tryAgainIsTransient(t *caseT) {
	p, l := t.behind()
	name := t.Key()
	t.Server.Mini.SetError("TRYAGAIN Multiple keys request during rehashing of slot")
	var lock *locker.Lock
	acquired := suite.Background(func() (err error) {
		lock, err = l.Acquire(t.Ctx, locker.Request{Name: name, TTL: long, Fenced: true})
		return err
	})
	t.Eventually("Acquire tries again", func() bool { return p.Sent(name) >= 2 })
	t.Server.Mini.SetError("")
	t.OK(t.Result(acquired, "Acquire"), "Acquire while a slot moves")
	t.covers(lock)
	t.OK(lock.Release(t.Ctx), "Release")
}

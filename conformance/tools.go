package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/conformance/internal/suite"
	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/sibling"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/strategies/single"
)

// long is a TTL longer than any case: a key that disappears was removed and did not expire.
const long = 10 * time.Minute

// inMemory are the timeouts in fake time.
var inMemory = Timeouts{Attempt: attemptTimeout, Release: 10 * attemptTimeout}

const attemptTimeout = time.Second

// timeouts returns the timeouts of strategies on the server of the case.
func (t *caseT) timeouts() Timeouts {
	if t.InFakeTime() {
		return inMemory
	}
	return Timeouts{Attempt: t.Limit / 3, Release: t.Limit / 2}
}

// newSingle is the default of Harness.New.
func newSingle(drv driver.Driver, bound Timeouts) (locker.Locker, error) {
	return single.New(drv, single.Config{AttemptTimeout: bound.Attempt, ReleaseTimeout: bound.Release})
}

// locker makes the strategy under test over drv.
func (t *caseT) locker(drv driver.Driver) locker.Locker {
	t.Helper()
	return t.bounded(drv, t.timeouts())
}

// bounded is locker with other timeouts.
func (t *caseT) bounded(drv driver.Driver, bound Timeouts) locker.Locker {
	t.Helper()
	newLocker := newSingle
	if t.h.New != nil {
		newLocker = t.h.New
	}
	l, err := newLocker(drv, bound)
	t.OK(err, "Harness.New")
	if t.h.Can.CoolDown > 0 {
		l = cooled{l, t.h.Can.CoolDown}
	}
	return t.wrap(l)
}

// wrapped is a Locker with Harness.Around around it.
type wrapped struct {
	locker.Locker
	bare locker.Locker
}

// Unwrap gives lease.Find access to the strategy.
func (w wrapped) Unwrap() locker.Locker { return w.Locker }

func (t *caseT) wrap(bare locker.Locker) locker.Locker {
	if t.h.Around == nil {
		return bare
	}
	return wrapped{t.h.Around(bare), bare}
}

// unwrap returns the Locker without Harness.Around.
func unwrap(l locker.Locker) locker.Locker {
	if d, ok := l.(wrapped); ok {
		return d.bare
	}
	return l
}

// direct makes a Locker over a client of its own.
func (t *caseT) direct() locker.Locker {
	t.Helper()
	drv := t.Driver()
	t.connect(drv)
	return t.locker(drv)
}

// behind makes a Locker over a client behind a proxy. The server knows its scripts, so that each
// operation is one command.
func (t *caseT) behind() (*faultproxy.Proxy, locker.Locker) {
	t.Helper()
	p, drv := t.Proxied()
	t.connect(drv)
	l := t.locker(drv)
	t.warmLocker(l)
	return p, l
}

// connect opens a connection of drv on a real server. That may take longer than an attempt may.
func (t *caseT) connect(drv driver.Driver) {
	t.Helper()
	if t.InFakeTime() {
		return
	}
	_, err := drv.SetNX(t.Ctx, t.Key(), "", time.Millisecond)
	t.OK(err, "SetNX to connect")
}

// warmLocker loads the strategy's scripts into the server.
func (t *caseT) warmLocker(l locker.Locker) {
	t.Helper()
	for _, fenced := range []bool{true, false} {
		lock := t.acquire(l, locker.Request{Name: t.Key(), TTL: long, Fenced: fenced})
		t.contended(l, locker.Request{Name: lock.Name()})
		t.OK(lock.Renew(t.Ctx, 0), "Renew")
		t.OK(lock.Release(t.Ctx), "Release")
	}
}

// acquire acquires a lock or fails the case.
func (t *caseT) acquire(l locker.Locker, req locker.Request) *locker.Lock {
	t.Helper()
	lock, err := l.Acquire(t.Ctx, req)
	t.OK(err, "Acquire")
	t.releaseLater(lock)
	t.held(lock)
	return lock
}

// releaseLater releases a lock at the end of the case, before its driver is closed.
func (t *caseT) releaseLater(lock *locker.Lock) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Ctx), t.Limit)
		defer cancel()
		_ = lock.Release(ctx)
	})
}

// acquireExpiring acquires a lock and lets it expire: if the strategy renews locks, it closes the
// holder's driver.
func (t *caseT) acquireExpiring(req locker.Request) *locker.Lock {
	t.Helper()
	drv := t.Driver()
	lock := t.acquire(t.locker(drv), req)
	if t.h.Can.Renews {
		t.Close(drv)
	}
	return lock
}

// held demands that Err is nil and Done is open.
func (t *caseT) held(lock *locker.Lock) {
	t.Helper()
	if err := lock.Err(); err != nil {
		t.Errorf("a lock that should be held reports %v", err)
	}
	select {
	case <-lock.Done():
		t.Errorf("Done of a lock that should be held is closed")
	default:
	}
}

// lost demands that Err is ErrLost and Done is closed.
func (t *caseT) lost(lock *locker.Lock) {
	t.Helper()
	t.Is(lock.Err(), locker.ErrLost, "Err of a lost lock")
	select {
	case <-lock.Done():
	default:
		t.Errorf("Done of a lost lock is not closed")
	}
}

// contended demands that an acquire is refused for another holder, and for no other reason.
func (t *caseT) contended(l locker.Locker, req locker.Request) *locker.ContentionError {
	t.Helper()
	lock, err := l.Acquire(t.Ctx, req)
	if lock != nil {
		t.Fatalf("Acquire of %.80q, which another holds, returned a lock", req.Name)
	}
	var ce *locker.ContentionError
	if !errors.Is(err, locker.ErrNotAcquired) || !errors.As(err, &ce) {
		t.Fatalf("Acquire of %.80q, which another holds: got %v, want a *locker.ContentionError", req.Name, err)
	}
	t.isNot(err, locker.ErrUnknownOutcome, "contention")
	return ce
}

// contendedFor is contended, and the refused request waits at the server for a minute.
func (t *caseT) contendedFor(l locker.Locker, req locker.Request) (ce *locker.ContentionError) {
	t.Helper()
	t.KeepWaiting(req.Name, func() { ce = t.contended(l, req) })
	return ce
}

// free acquires and releases the lock.
func (t *caseT) free(l locker.Locker, name string) {
	t.Helper()
	t.OK(t.acquire(l, locker.Request{Name: name, TTL: long}).Release(t.Ctx), "Release")
}

// covers demands that a lock's Deadline is not later than the expiry of its key.
func (t *caseT) covers(lock *locker.Lock) {
	t.Helper()
	left := t.PTTL(lock.Name())
	end := time.Now().Add(left + time.Millisecond) // rounded down by the server
	switch {
	case left == suite.NoKey:
		t.Errorf("a held lock has no key")
	case left == suite.NeverExpires:
		t.Errorf("the key of a held lock never expires: if its holder dies, nobody gets it")
	case lock.Deadline().IsZero():
		t.Errorf("a lock whose key expires has no Deadline")
	case lock.Deadline().After(end):
		t.Errorf("the Deadline is %v after the end of the lease at the server", lock.Deadline().Sub(end))
	}
}

// notContention demands that a fault's error does not look like contention.
func (t *caseT) notContention(err error, what string) {
	t.Helper()
	t.isNot(err, locker.ErrNotAcquired, "%s: an outage is not contention", what)
}

// isNot demands that err does not match target.
func (t *caseT) isNot(err, target error, what string, args ...any) {
	t.Helper()
	if errors.Is(err, target) {
		t.Errorf(what+": got error %v, which must not match %q", append(args, err, target)...)
	}
}

// latency is more than a command and its reply take in memory.
const latency = time.Millisecond

// took demands that want has passed since began, in fake time.
func (t *caseT) took(began time.Time, want time.Duration, what string, args ...any) {
	t.Helper()
	if late := time.Since(began) - want; late < 0 || late > latency {
		t.Errorf("%s took %v, want %v", fmt.Sprintf(what, args...), want+late, want)
	}
}

// unanswered makes a call whose first command about a name meets a fault, and then cancels it. The
// call's resends are held back until it has returned.
func (t *caseT) unanswered(p *faultproxy.Proxy, name string, fault faultproxy.Fault, what string,
	call func(context.Context) error) (*faultproxy.Trap, error) {
	t.Helper()
	return t.unansweredBecause(context.Canceled, p, name, fault, what, call)
}

// unansweredBecause is unanswered with a cause for the cancellation.
func (t *caseT) unansweredBecause(cause error, p *faultproxy.Proxy, name string, fault faultproxy.Fault, what string,
	call func(context.Context) error) (*faultproxy.Trap, error) {
	t.Helper()
	trap := p.Fail(name, fault)
	again := p.Add(faultproxy.Rule{Match: faultproxy.Contains(name), Fault: faultproxy.StallRequest, Every: true})
	defer again.Release()
	ctx, cancel := context.WithCancelCause(t.Ctx)
	defer cancel(nil)
	result := suite.Background(func() error { return call(ctx) })
	t.Event(trap.Hit(), what+" meets a fault")
	cancel(cause)
	return trap, t.Result(result, what)
}

// canceled returns a cancelled context.
func (t *caseT) canceled() context.Context {
	ctx, cancel := context.WithCancel(t.Ctx)
	cancel()
	return ctx
}

// notReentrant and the following select the strategies of a case.
func notReentrant(c Capabilities) bool   { return !c.Reentrant }
func stringKey(c Capabilities) bool      { return !c.Hash }
func releaseTimeout(c Capabilities) bool { return c.ReleaseTimeout }
func renews(c Capabilities) bool         { return c.Renews }
func lapses(c Capabilities) bool         { return !c.Renews }
func fair(c Capabilities) bool           { return c.Fair }
func handsOver(c Capabilities) bool      { return c.CoolDown == 0 }

// fenceKey returns the key of the fence counter of a name: Harness.Siblings, or as docs/contracts.md
// defines it.
func (t *caseT) fenceKey(name string) string {
	if t.h.Siblings != nil {
		return t.h.Siblings.FenceKey(name)
	}
	key, _ := sibling.Of(name, sibling.FenceSuffix)
	return key
}

// gone demands that a lock's key does not exist.
func (t *caseT) gone(name, when string, args ...any) {
	t.Helper()
	if t.Exists(name) {
		t.Errorf("the key %.80q is still there %s", name, fmt.Sprintf(when, args...))
	}
}

// freeSoon waits until the lock can be acquired, and leaves it free.
func (t *caseT) freeSoon(l locker.Locker, req locker.Request, what string) {
	t.Helper()
	t.Eventually(what, func() bool {
		lock, err := l.Acquire(t.Ctx, req)
		return err == nil && lock.Release(t.Ctx) == nil
	})
}

// acquiring acquires in the background, and returns the channel of the error.
func acquiring(ctx context.Context, l locker.Locker, req locker.Request) <-chan error {
	return suite.Background(func() error {
		_, err := l.Acquire(ctx, req)
		return err
	})
}

// sendsNothing demands that f sends no command about a lock through p.
func (t *caseT) sendsNothing(p *faultproxy.Proxy, name string, f func()) {
	t.Helper()
	before := p.Sent(name)
	f()
	if n := p.Sent(name); n != before {
		t.Errorf("%d commands were sent, want none", n-before)
	}
}

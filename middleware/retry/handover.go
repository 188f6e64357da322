package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	// fenceBlock is how many fencing tokens are reserved at once for hand-overs.
	fenceBlock = 4096
	// tenureLook is how often the first waiter asks the server while a request of this process holds
	// the lock and no hand-over happens.
	tenureLook = time.Second
	// reservePause is how long, after fencing tokens could not be reserved, no hand-over needs them:
	// its waiter would lose its place each time.
	reservePause = time.Second
	// minYield is the minimum time for which the waiters of this process make no attempt after a
	// tenure that HandOver ended.
	minYield = time.Millisecond
)

// terms are what a request asks of its lease.
type terms struct {
	ttl    time.Duration // zero: the strategy's default
	fenced bool
}

func termsOf(req locker.Request) terms { return terms{req.TTL, req.Fenced} }

// serve reports whether a hold acquired under t serves a request with the terms w.
func (t terms) serve(w terms) bool {
	return t.ttl == w.ttl && (t.fenced || !w.fenced)
}

// tenure is the time for which this process holds a name at the server: from an acquire, through
// hand-overs, to the release that is sent. The current holder owns fence and reserved; the mutex of
// queues guards the rest.
type tenure struct {
	lease lease.Transferable
	terms terms
	note  string    // as the server knows it: of the first request
	until time.Time // no hand-over after it

	lock     *locker.Lock            // the one that holds, or held last
	refusal  *locker.ContentionError // for waiters
	latest   time.Time               // when lock was acquired or handed over
	overtime bool                    // it ends because until has passed, though others of this process wait

	fence    int64 // the latest token
	reserved int64 // the last token of the block
}

// newTenure returns the tenure that begins with lock, or nil if it cannot be handed over. Errors:
// ErrInvalid if a wrapper, which acts for one Lock, is around the strategy's lease.
func (r *retrier) newTenure(lock *locker.Lock, inner lease.Lease, req locker.Request) (*tenure, error) {
	if r.cfg.HandOver <= 0 || req.Mode != locker.Exclusive || !req.Resume.IsZero() {
		return nil, nil
	}
	l, ok := lease.Find[lease.Transferable](inner)
	if !ok {
		return nil, nil
	}
	if lease.Lease(l) != inner {
		return nil, driver.Invalid("retry.Config.HandOver", fmt.Sprintf("%v around a %T", r.cfg.HandOver, inner),
			"0, or retry inside middleware that wraps leases, as in holdfast.New")
	}
	if _, ok = l.Transfer(); !ok { // as of an owner
		return nil, nil
	}
	now, fence := time.Now(), lock.Fence()
	return &tenure{
		lease: l, terms: termsOf(req), note: req.Note, until: now.Add(r.cfg.HandOver), lock: lock, latest: now, fence: fence, reserved: fence,
		refusal: &locker.ContentionError{Name: req.Name, Note: req.Note},
	}, nil
}

// outcome returns what waiters know while t lasts.
func (t *tenure) outcome(now time.Time) outcome {
	return outcome{held: t.refusal, here: t.lock, at: now}
}

// nameHolder returns o with the holder of now where the server named the tenure's first one. mu is held.
func (q *queue) nameHolder(o outcome) outcome {
	t := q.tenure
	if t == nil || o.held == nil || o.held.Owner != "" || o.held.Note != t.note || t.lost(o.at) {
		return o
	}
	held := *o.held
	held.Note = t.refusal.Note
	o.held, o.here = &held, t.lock
	return o
}

// begin records that t begins with an acquire of name, or, if it is nil, that the one before is over:
// the server granted the lock to somebody else. mu is held.
func (qs *queues) begin(name string, t *tenure) {
	if t == nil {
		qs.end(name, qs.tenures[name])
		return
	}
	if len(qs.tenures) >= qs.sweepAt {
		qs.sweep(time.Now())
	}
	qs.tenures[name] = t
	if q := qs.byName[name]; q != nil {
		q.tenure = t
	}
}

// goOn gives a new queue the tenure of its name, if there is one. mu is held.
func (qs *queues) goOn(q *queue) {
	t, now := qs.tenures[q.name], time.Now()
	switch {
	case t == nil:
	case t.lost(now):
		qs.end(q.name, t)
	default:
		q.tenure, q.known = t, t.outcome(now)
	}
}

// lost reports whether t's latest Lock was lost: the holder's or, during a hand-over, the one
// before.
func (t *tenure) lost(now time.Time) bool {
	err, end := t.lock.Err(), t.lock.Deadline()
	return err != nil && err != locker.ErrReleased || !end.IsZero() && !now.Before(end) //nolint:errorlint // set by Release itself
}

// sweep forgets the tenures whose lease ran out and whose Lock was never released. The amortized
// cost for each is constant.
func (qs *queues) sweep(now time.Time) {
	for name, t := range qs.tenures {
		if t.lost(now) {
			qs.end(name, t)
		}
	}
	qs.sweepAt = 2*len(qs.tenures) + 64
}

// end forgets t. The look that a leader relies on goes on. mu is held.
func (qs *queues) end(name string, t *tenure) {
	if t == nil || qs.tenures[name] != t {
		return
	}
	delete(qs.tenures, name)
	if q := qs.byName[name]; q != nil {
		q.tenure = nil
	}
}

// inheritance is a hold that was handed over to a waiter.
type inheritance struct {
	tenure *tenure
	grant  lease.Grant
	from   *locker.Lock
}

// handOver gives the hold of a lock that was just released to the first waiter of this process, and
// reports whether it did. It sends nothing.
func (l *wakingLease) handOver() bool {
	t, qs := l.tenure, l.queues
	if t == nil || l.lock.Err() != locker.ErrReleased || !qs.awaited(t) || !l.lock.Hold().Disown() { //nolint:errorlint // set by Release itself
		return false
	}
	grant, ok := t.lease.Transfer()
	now := time.Now()
	if !ok || !grant.Deadline.IsZero() && grant.Deadline.Sub(now) < grant.TTL/4 {
		return false
	}
	qs.mu.Lock()
	q := qs.byName[l.lock.Name()]
	if q == nil || q.tenure != t || t.lock != l.lock {
		qs.mu.Unlock()
		return false
	}
	heir := q.heir(t)
	if heir != nil && heir.terms.fenced && t.fence >= t.reserved && now.Before(qs.reserveAfter) {
		heir = nil
	}
	if heir == nil || !now.Before(t.until) {
		t.overtime = heir != nil
		qs.mu.Unlock()
		return false
	}
	t.latest = now
	heir.inheritance = &inheritance{t, grant, l.lock}
	sub := q.remove(heir)
	heir.notify(locktrace.ByHandOver)
	qs.mu.Unlock()
	closeSub(sub)
	return true
}

// awaited reports whether t lasts and somebody waits for its name.
func (qs *queues) awaited(t *tenure) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[t.refusal.Name]
	return q != nil && q.tenure == t
}

// heir returns the waiter to hand the hold of t over to: the first one without an attempt in
// flight. It returns nil if there is none, or if that one asked for something else.
func (q *queue) heir(t *tenure) *waiter {
	first := q.line(false).first
	if shared := q.line(true).first; shared != nil && first != nil && shared.number < first.number {
		return nil // whether the strategy orders the modes or not
	}
	for w := first; w != nil; w = w.behind {
		switch {
		case w.asking:
		case w.mayInherit() && t.terms.serve(w.terms):
			return w
		default:
			return nil
		}
	}
	return nil
}

// held reports whether w is the leader of a queue whose lock this process holds and may hand over to
// it.
func (w *waiter) held() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.tenure != nil && w.leads() && w.mayInherit()
}

// mayInherit reports whether w's request is one that a lock may be handed over to. An owner's is
// not: it may hold the lock already.
func (w *waiter) mayInherit() bool { return !w.shared && w.owner == "" }

// take returns what was handed over to w, once.
func (w *waiter) take() *inheritance {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	i := w.inheritance
	w.inheritance = nil
	return i
}

// inherit makes the Lock of what was handed over. again: the hold was lost or had to be released.
func (a *acquisition) inherit(i *inheritance) (lock *locker.Lock, again bool) {
	made := false
	defer func() {
		if !made { // also where a callback panics; ctx does not bound the release
			go a.queues.abandon(context.WithoutCancel(a.ctx), i)
		}
	}()
	a.traceHandedOver(i.from)
	if !a.renew(i) || !a.reserve(i) {
		return nil, true
	}
	t := i.tenure
	if a.req.Fenced {
		t.fence++
		i.grant.Fence = t.fence
	}
	i.grant.Mode = locker.Exclusive
	lock = locker.NewLock(a.ctx, i.grant, t.lease)
	if made = lock.Err() == nil; !made {
		return nil, true
	}
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return &wakingLease{inner, a.queues, lock, t} })
	a.queues.inherited(t, lock, a.req.Note)
	return lock, false
}

// renew renews a lease of which less than half is left. It returns false if the hold is lost.
func (a *acquisition) renew(i *inheritance) bool {
	left := time.Until(i.grant.Deadline)
	if i.grant.Deadline.IsZero() || left >= i.grant.TTL/2 {
		return true
	}
	ctx, cancel := context.WithTimeout(a.ctx, max(left/2, 0))
	defer cancel()
	term, err := i.tenure.lease.Do(ctx, lease.Op{Kind: lease.OpRenew, TTL: i.grant.TTL})
	if err == nil {
		i.grant.Deadline = term.Deadline
	}
	return !errors.Is(err, locker.ErrNotHeld)
}

// reserve reserves fencing tokens if the request needs one and none is left. It returns false if it
// cannot.
func (a *acquisition) reserve(i *inheritance) bool {
	t := i.tenure
	if !a.req.Fenced || t.fence < t.reserved {
		return true
	}
	ctx := a.ctx
	if end := i.grant.Deadline; !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	last := t.fence + fenceBlock
	term, err := t.lease.Do(ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: last})
	if err != nil || term.Fence != last { // else somebody else may have got one of them
		a.queues.pauseReserving()
		return false
	}
	t.reserved = last
	return true
}

func (qs *queues) pauseReserving() {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.reserveAfter = time.Now().Add(reservePause)
}

// inherited records that lock, whose holder has the note, continues t.
func (qs *queues) inherited(t *tenure, lock *locker.Lock, note string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	t.lock = lock
	if note != t.refusal.Note {
		t.refusal = &locker.ContentionError{Name: t.refusal.Name, Note: note}
	}
	if q := qs.byName[t.refusal.Name]; q != nil && q.tenure == t {
		now := time.Now()
		q.known, q.silence = t.outcome(now), q.silence.answer(now)
	}
}

// abandon releases a hold that was handed over and that no Lock continues.
func (qs *queues) abandon(ctx context.Context, i *inheritance) {
	_, _ = i.tenure.lease.Do(ctx, lease.Op{Kind: lease.OpRelease})
	qs.released(i.tenure.refusal.Name, i.tenure)
}

// look starts the timer that wakes the leaders, unless it runs: to ask the server about a tenure
// without hand-overs, or to try once they have yielded. mu is held.
func (q *queue) look(after time.Duration) {
	if q.looks == nil {
		q.looks = time.AfterFunc(after, q.lookNow)
	}
}

func (q *queue) lookNow() {
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.looks == nil {
		return // it was stopped
	}
	q.looks = nil
	now := time.Now()
	switch t := q.tenure; {
	case now.Before(q.notBefore):
		q.look(q.notBefore.Sub(now))
	case t == nil:
		q.wakeLeaders(locktrace.ByRelease, nil)
	case now.Before(t.lookAt(t.latest)):
		q.look(t.lookAt(t.latest).Sub(now))
	default:
		q.wakeLeaders(locktrace.ByBackoff, nil)
	}
}

// lookAt returns when a leader asks the server about t if nothing happens from now on: in a while,
// or at the end of the lease.
func (t *tenure) lookAt(now time.Time) time.Time {
	at := now.Add(tenureLook)
	if end := t.lock.Deadline(); !end.IsZero() && end.Before(at) {
		return end
	}
	return at
}

func (q *queue) stopLook() {
	if q.looks != nil {
		q.looks.Stop()
		q.looks = nil
	}
}

// yield lets other processes go first after a tenure that HandOver ended: the leaders wait for as
// long as a few attempts take. mu is held.
func (q *queue) yield(now time.Time) {
	q.notBefore = now.Add(max(minYield, 4*q.timing.fastest))
}

// pollTimes returns the bounds of when a leader asks the server though nothing wakes it. It polls
// at rarely at the earliest, which is later in a tenure. It sends nothing before notBefore, while
// it yields, even if the lease ends.
func (w *waiter) pollTimes(now time.Time) (rarely, notBefore time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	rarely = now
	if t := q.tenure; t != nil && !t.lost(now) {
		rarely = t.lookAt(now)
	}
	return rarely, q.notBefore
}

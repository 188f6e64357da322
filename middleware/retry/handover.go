package retry

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

const (
	// fenceBlock is how many fencing tokens are reserved at once for hand-overs.
	fenceBlock = 4096
	// reservePause is how long, after fencing tokens could not be reserved, no hand-over needs
	// them: its waiter would lose its place each time.
	reservePause = time.Second
)

// inheritance is a hold that was handed over to a waiter.
type inheritance struct {
	tenure *tenure
	grant  lease.Grant
	from   lease.Hold
}

// handOver gives the hold of a lock that was just released to the first waiter of this process, and
// reports whether it did. It sends nothing.
func (l *wakingLease) handOver() bool {
	t, qs := l.tenure, l.queues
	if t == nil || l.lock.Err() != locker.ErrReleased || !qs.awaited(t) || !l.lock.Disown() { //nolint:errorlint // set by Release itself
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
	t.inheritance = inheritance{t, grant, l.lock}
	heir.inheritance = &t.inheritance
	left := q.remove(heir, true)
	heir.notify(locktrace.ByHandOver)
	qs.mu.Unlock()
	left.close()
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

// held reports whether w is the leader of a queue whose lock this process holds and may hand over
// to it.
func (w *waiter) held() bool {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.tenure != nil && !w.queue.all.closing && w.leads() && w.mayInherit()
}

// mayInherit reports whether w's request is one that a lock may be handed over to. An owner's is
// not: it may hold the lock already.
func (w *waiter) mayInherit() bool { return !w.shared && w.owner == "" }

// take returns what was handed over to w, once. w may be nil.
func (w *waiter) take() *inheritance {
	if w == nil {
		return nil
	}
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
	t, now := i.tenure, time.Now()
	if !a.renew(i, now) || !a.reserve(i) {
		return nil, true
	}
	if a.req.Fenced {
		t.fence++
		i.grant.Fence = t.fence
	}
	i.grant.Mode = locker.Exclusive
	lock = locker.NewLock(a.ctx, i.grant, t.lease)
	if made = lock.Err() == nil; !made {
		return nil, true
	}
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease { return &wakingLease{inner, a.queues, lock.Hold(), t} })
	a.queues.inherited(t, lock, a.req.Note, now)
	return lock, false
}

// renew renews a lease of which less than half is left. It returns false if the hold is lost.
func (a *acquisition) renew(i *inheritance, now time.Time) bool {
	left := i.grant.Deadline.Sub(now)
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
func (qs *queues) inherited(t *tenure, lock *locker.Lock, note string, now time.Time) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	t.lock = lock.Hold()
	if note != t.refusal.Note {
		t.refusal = &locker.ContentionError{Name: t.refusal.Name, Note: note}
	}
	if q := qs.byName[t.refusal.Name]; q != nil && q.tenure == t {
		q.known, q.silence = t.outcome(now), q.silence.answer(now)
	}
}

// abandon releases a hold that was handed over and that no Lock continues.
func (qs *queues) abandon(ctx context.Context, i *inheritance) {
	_, _ = i.tenure.lease.Do(ctx, lease.Op{Kind: lease.OpRelease})
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.released(i.tenure.refusal.Name, i.tenure, false, lease.OthersUnknown)
}

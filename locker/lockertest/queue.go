package lockertest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// The times of the queue of waiters at a server.
const (
	retryWaiter = 2 * time.Second        // when a waiter with a place tries again at the latest
	countsFor   = 3 * time.Second        // for how long it counts after that
	timeToTry   = 500 * time.Millisecond // for how long a free lock is kept for a woken waiter
)

// place is the place of a process among the waiters for a name.
type place struct {
	id          string
	since       time.Time // when it began to wait
	end         time.Time // until when it counts
	keptUntil   time.Time // until when a free name is kept for it; zero: it was not woken
	unconfirmed bool      // it may not have subscribed yet
}

func (p *place) counts(now time.Time) bool {
	return now.Before(p.end) && (p.keptUntil.IsZero() || !now.After(p.keptUntil))
}

// waiting returns the waiter of this attempt. Its ID is empty if it has no place: it does not wait,
// is a reader, or is an attempt at a node of a quorum.
func waiting(ctx context.Context, req locker.Request) lease.Waiting {
	w, ok := lease.WaitingFrom(ctx)
	if !ok || w.Quorum || req.Mode == locker.Shared || !req.Resume.IsZero() {
		w.ID = ""
	}
	return w
}

// firstPlace returns the place of the woken waiter, else of the longest waiting one, or nil. It
// drops places that do not count, except that of the waiter trying.
func (t *tenures) firstPlace(trying string) (first *place) {
	now := time.Now()
	t.places = slices.DeleteFunc(t.places, func(p *place) bool { return p.id != trying && !p.counts(now) })
	for _, p := range t.places {
		switch {
		case !p.keptUntil.IsZero():
			return p
		case first == nil || p.since.Before(first.since):
			first = p
		}
	}
	return first
}

// waiters returns how many places count.
func (t *tenures) waiters() (n int) {
	now := time.Now()
	for _, p := range t.places {
		if now.Before(p.end) {
			n++
		}
	}
	return n
}

func (t *tenures) leavePlace(id string) {
	t.places = slices.DeleteFunc(t.places, func(p *place) bool { return p.id == id })
}

// enqueue gives a refused waiter its place, or extends its time there. It returns when the waiter
// is to try again at the latest.
func (t *tenures) enqueue(w lease.Waiting) time.Duration {
	now := time.Now()
	at := slices.IndexFunc(t.places, func(p *place) bool { return p.id == w.ID })
	if at < 0 {
		at = len(t.places)
		t.places = append(t.places, &place{id: w.ID})
	}
	p := t.places[at]
	p.since, p.keptUntil, p.unconfirmed = w.Since, time.Time{}, !w.Subscribed
	end := now.Add(retryWaiter + countsFor)
	if !w.Until.IsZero() {
		end = earlier(end, w.Until)
	}
	if end.After(p.end) {
		p.end = end
	}
	return retryWaiter
}

// passOn removes the place of an acquiring waiter. If the order is strict, the next waiter of its
// process takes it over.
func (l *Locker) passOn(t *tenures, w lease.Waiting) {
	if w.ID == "" {
		return
	}
	t.leavePlace(w.ID)
	if l.permits > 0 && !w.Next.IsZero() {
		t.enqueue(lease.Waiting{ID: w.ID, Since: w.Next, Subscribed: w.Subscribed})
	}
}

// keptFor returns for how long a name free for the caller is kept for another waiter, or 0: for a
// woken one with time to try, or, if the order is strict, for the first one.
func (l *Locker) keptFor(name string, waits bool, id string) time.Duration {
	t := l.of(name)
	if first := t.firstPlace(id); first == nil || first.id == id || l.permits == 0 && !waits {
		return 0
	}
	if l.permits > 0 {
		l.wakeFirst(name, id) // drops those that no longer listen
	}
	first := t.firstPlace("")
	if first == nil || first.id == id || first.keptUntil.IsZero() {
		return 0
	}
	return time.Until(first.keptUntil) + time.Millisecond
}

// wakeFirst wakes the first waiter, unless one has been woken and has time to try, and returns its
// ID. It drops waiters that have ceased to listen. Its process wakes own.
func (l *Locker) wakeFirst(name, own string) string {
	t := l.of(name)
	for {
		p := t.firstPlace("")
		switch {
		case p == nil:
			return ""
		case !p.keptUntil.IsZero():
			return p.id
		case p.id == own || l.publish(l.channel(name).For(p.id).Name()) || p.unconfirmed:
			p.keptUntil = time.Now().Add(timeToTry)
			return p.id
		}
		t.leavePlace(p.id)
	}
}

// wake wakes the waiters to try next once name may be free: all without a place, and the first with
// one. op is the release, if it is one. The mutex is held.
func (l *Locker) wake(name string, op lease.Op) lease.Result {
	switch {
	case op.ForWaiter && l.permits == 0:
		return lease.Result{}
	case op.WaiterLeft:
		l.of(name).leavePlace(op.Waiter)
		op.Waiter = ""
	}
	all := l.publish(name)
	first := l.wakeFirst(name, op.Waiter)
	woke := all || first != "" && first != op.Waiter
	return lease.Result{Alone: !woke, WokeOther: woke}
}

// Leave implements lease.Leaver.
func (l *Locker) Leave(name, id string, left func()) {
	defer left()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(name)
	t.leavePlace(id)
	switch holds := t.live(); {
	case len(holds) == 0 || l.permits > 0:
		l.wake(name, lease.Op{})
	case t.firstPlace("") == nil && holds[0].mode == locker.Shared:
		l.publish(name) // to readers kept out by a writer
	}
}

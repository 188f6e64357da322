package retry

import (
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// queue holds the requests of this process for one name, in a line for each mode. Waiters are numbered
// in order of entry.
type queue struct {
	all     *queues
	name    string
	lines   [2]line // exclusive, shared
	entered int     // number of the latest waiter
	size    int
	owners  map[string]int // number of waiters of each owner, if the strategy is reentrant; nil until several wait
	answers answers        // to all attempts

	// onlyLeaderShares: of the shared waiters only the leader tries, until one has acquired the lock. It is
	// set when a shared attempt fails, or when a shared waiter becomes the leader after an exclusive
	// one.
	onlyLeaderShares bool

	mayHavePlace bool   // this process may have a place in the server's queue
	vacant       bool   // the latest release here found nobody waiting at the server
	turn         turn   // of this process, or of another
	baton        *baton // of the latest release; nil: it did not rely on a waiter here, or the duty is done
}

// line is a list of waiters of one mode.
type line struct {
	first, last *waiter
	// subscription is the leader's. Unless the strategy orders the modes, both leaders use that of
	// the exclusive line. nil: not asked for.
	subscription *subscription
}

// enter adds a waiter for r at the end of the queue of r's name. ahead is the number of waiters ahead;
// if zero, w's first attempt begins at now. listens: w has a subscription.
func (qs *queues) enter(r request, now time.Time) (w *waiter, ahead int, listens bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[r.name]
	if q == nil {
		made := new(struct { // one allocation for both
			queue  queue
			waiter waiter
		})
		q, w = &made.queue, &made.waiter
		q.all, q.name = qs, r.name
		qs.byName[r.name] = q
		q.mayHavePlace = qs.forgetPlace(r.name)
		qs.unpark(q)
	} else {
		w, ahead = new(waiter), q.size
	}
	q.entered++
	q.size++
	line := q.line(r.shared)
	*w = waiter{queue: q, number: q.entered, request: r, ahead: line.last}
	w.mayReenter = qs.reenters && r.ownerHolds(q.answers.latest)
	if line.last == nil {
		line.first = w
	} else {
		line.last.behind = w
	}
	line.last = w
	q.countOwner(w, 1)
	if ahead == 0 {
		w.begin(send, now)
	}
	return w, ahead, w.subscription().made()
}

func (q *queue) line(shared bool) *line {
	if shared {
		return &q.lines[1]
	}
	return &q.lines[0]
}

// remove removes w after its acquire, or after it gave up. It returns a cleanup to run without mu.
// mu is held.
func (q *queue) remove(w *waiter, acquired bool) (c cleanup) {
	line := q.line(w.shared)
	first, number := line.first == w, w.number
	w.number = 0
	if w.ahead == nil {
		line.first = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind == nil {
		line.last = w.ahead
	} else {
		w.behind.ahead = w.ahead
	}
	q.size--
	q.countOwner(w, -1)
	if !acquired {
		q.answers.cutOff(w, time.Now())
		q.dropBaton(w)
		if first && q.all.server.fair { // the place has w's age: the next leader's attempt corrects it
			q.turn = turn{}
		}
	}
	if line.first == nil {
		q.leaveServerQueue(w, acquired, &c)
		if w.shared {
			q.onlyLeaderShares = false
			c.subs[1] = line.subscription.detach() // the server would count its listener as a reader
		}
	}
	if q.size == 0 {
		q.removeEmpty(acquired, &c)
		return c
	}
	if first {
		q.wakeNewLeaders(w.shared, number)
	}
	return c
}

// removeEmpty removes q after its last waiter has left. mu is held.
func (q *queue) removeEmpty(acquired bool, c *cleanup) {
	delete(q.all.byName, q.name)
	if q.all.server.used && q.mayHavePlace {
		q.all.recordPlace(q.name)
	}
	if q.baton != nil && q.baton.answered {
		if c.id != "" {
			c.queue = nil // wakeOthers removes the place
		}
		go q.baton.lease.wakeOthers()
	}
	q.lines[1].subscription.cancelSubscribe()
	if !q.all.park(q, acquired) {
		q.lines[0].subscription.cancelSubscribe()
		c.subs[0] = q.lines[0].subscription.detach()
	}
}

// leaveServerQueue makes c end the place in the server's queue after w, the last waiter of its line: the
// server would keep the lock from others. If w acquired the lock, there is a place only if w passed it on
// to a waiter that gave up meanwhile. mu is held.
func (q *queue) leaveServerQueue(w *waiter, acquired bool, c *cleanup) {
	switch {
	case q.all.leaver == nil:
	case w.shared && !acquired && w.askedForPlace && q.all.ordered:
		c.queue = q
	case !w.shared && q.mayHavePlace && (q.all.server.fair || q.all.ordered):
		c.queue, c.id, q.mayHavePlace = q, q.all.id, false
	}
}

// cleanup is the work that a waiter leaves to do without mu.
type cleanup struct {
	queue *queue                 // a line of it left the queue at the server; nil: none
	id    string                 // of the place to remove; "": readers have none
	subs  [2]driver.Subscription // to be closed
}

func (c cleanup) run() {
	closeSub(c.subs[0])
	closeSub(c.subs[1])
	if c.queue != nil {
		all, name := c.queue.all, c.queue.name
		all.leaver.Leave(name, c.id, func() { all.tryAgain(name) })
	}
}

// leader returns the first waiter of a line, or nil if the other line is ahead of it. While others hold
// the lock, leaders alone make attempts.
func (q *queue) leader(shared bool) *waiter {
	if w := q.line(shared).first; w != nil && q.admits(w) {
		return w
	}
	return nil
}

// wakeNewLeaders wakes the new leaders, and shared waiters that may try, after the first waiter of a
// line has left: shared is its mode, number its number.
func (q *queue) wakeNewLeaders(shared bool, number int) {
	if next := q.leader(shared); next != nil {
		next.notify(locktrace.ByTurn)
	}
	if other := q.leader(!shared); other != nil && number < other.number && !q.all.ordered {
		// If an exclusive waiter left, it may have the lock: the other shared waiters wait for the leader's answer.
		q.onlyLeaderShares = q.onlyLeaderShares || other.shared
		other.notify(locktrace.ByTurn)
	}
	if !shared && !q.onlyLeaderShares && !q.all.ordered {
		q.wakeShared(number)
	}
}

// letSharedTry lets the shared waiters without an exclusive waiter ahead try.
func (q *queue) letSharedTry() {
	if q.onlyLeaderShares {
		q.onlyLeaderShares = false
		q.wakeShared(0)
	}
}

// wakeShared wakes the shared waiters behind number without an exclusive waiter ahead.
func (q *queue) wakeShared(number int) {
	for w := q.line(true).first; w != nil && q.admits(w); w = w.behind {
		if w.number > number {
			w.notify(locktrace.ByTurn)
		}
	}
}

// waiters returns the waiters, those of one mode after those of the other.
func (q *queue) waiters() iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		for i := range q.lines {
			for w := q.lines[i].first; w != nil; w = w.behind {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// admits reports whether no waiter of the other mode is ahead of w, or the strategy orders the
// modes.
func (q *queue) admits(w *waiter) bool {
	other := q.line(!w.shared).first
	return q.all.ordered || other == nil || w.number < other.number
}

// wakeLeaders wakes the leaders.
func (q *queue) wakeLeaders(by locktrace.WakeReason) {
	for _, shared := range [2]bool{false, true} {
		if w := q.leader(shared); w != nil {
			w.notify(by)
		}
	}
}

// recordAcquire records an acquire by w, or by a request outside the queue if w is nil. alone: nobody
// else can hold the lock. mu is held.
func (q *queue) recordAcquire(lock *locker.Lock, note string, alone bool, w *waiter) {
	now := time.Now()
	q.answers.answered(w, now)
	q.endBaton(w, alone)
	switch {
	case !alone:
		q.answers.latest = outcome{}
		q.letSharedTry()
	case w == nil || q.size > 1: // else no other waiter needs it
		held := &locker.ContentionError{Name: q.name, Owner: lock.Owner(), Note: note}
		q.setLatest(outcome{held: held, here: lock.Hold(), at: now}, w)
		q.vacant = false
	}
}

// afterRelease wakes the leaders after a release or conversion of lock here with that
// result. mu is held.
func (q *queue) afterRelease(lock lease.Hold, result lease.Result) {
	now := time.Now()
	q.recordRelease(lock, now)
	q.vacant = result.Alone
	if result.WokeOther && !q.all.server.fair {
		q.turn = turn{began: now}
	}
	q.wakeLeaders(locktrace.ByRelease)
}

// heldByOther reports whether another request here has acquired the lock after lock. mu is held.
func (q *queue) heldByOther(lock lease.Hold) bool {
	here := q.answers.latest.here
	return here != nil && here != lock
}

// recordRelease replaces the latest outcome, if it is about lock: the name was held until now. mu is
// held.
func (q *queue) recordRelease(lock lease.Hold, now time.Time) {
	q.vacant = false
	if was := q.answers.latest; was.here == lock || q.all.reenters && was.owner() != "" && was.owner() == lock.Owner() {
		q.answers.latest = assumedHeld(q.name, now)
		q.answers.latest.held.Owner, q.answers.latest.held.Note = was.held.Owner, was.held.Note
	}
}

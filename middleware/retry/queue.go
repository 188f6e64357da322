package retry

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// queues are the queues of one wrapped Locker, one for each name that somebody is acquiring.
//
// mu guards all that this file, waiter.go, owner.go, answers.go and subscribe.go declare: the map,
// the queues, the waiters and the subscriptions. It is held for a few steps, and never while
// foreign code runs: an attempt, a policy, a trace callback, a driver.
//
// While mu is free:
//
//  1. A queue is in byName as long as it has a waiter. One that has emptied is never used again.
//  2. Each line has at most one leader, its first waiter. There is always a leader, and only
//     leaders poll.
//  3. A waiter that [queue.step] lets send, and did not before, has a reason in its wake channel,
//     or has taken it out.
//  4. Whoever entered leaves, by a defer, whatever happens to it: so a queue cannot get stuck
//     behind one that gave up or panicked.
//
// No wake-up is lost while somebody waits: it stays in a waiter's channel, or in the
// subscription's, until an attempt is sent after it was heard. If that waiter gives up instead, its
// successor tries at once when it becomes the leader.
type queues struct {
	leaver   lease.Leaver // nil: a place at the server is left by a later command
	reenters bool         // the owner of a lock is granted it again

	mu       sync.Mutex
	strategy strategy
	byName   map[string]*queue
	id       string // of the places at the server, one for each name
	parked   map[string]*parkedSubscriptions

	// places are until when this process may have a place at the server, of the names for which
	// nobody waits any more.
	places        map[string]time.Time
	sweepPlacesAt int // how many there are when those that are over are removed

	watched bool        // the wake-up by Close was asked for
	unwatch func() bool // ends it; nil: there is none yet
	closing bool        // every attempt fails: a driver is being closed
}

func newQueues(inner locker.Locker) *queues {
	leaver, _ := locker.As[lease.Leaver](inner)
	return &queues{
		leaver: leaver, reenters: reenters(inner), id: lease.NewToken(),
		byName: map[string]*queue{}, parked: map[string]*parkedSubscriptions{},
		places: map[string]time.Time{}, sweepPlacesAt: 64,
	}
}

// strategy is what refusals have said of the strategy. It is the same for all names.
type strategy struct {
	queues bool // there is a queue of waiters at the server
	fair   bool // the order of that queue is strict
	// ordered: the strategy decides between the modes, so that both lines of a queue have a leader.
	// Otherwise a line has one while its first waiter entered before that of the other.
	ordered bool
}

// learn keeps what a refusal says.
func (s *strategy) learn(held *locker.ContentionError) {
	s.ordered = s.ordered || held.Ordered
	if held.Queue {
		s.queues, s.fair = true, held.Fair
	}
}

// queue holds those who acquire one name, in a line for each mode. Waiters are numbered in the
// order in which they entered.
type queue struct {
	all     *queues
	name    string
	lines   [2]line // exclusive, shared
	entered int     // the number of the latest waiter
	size    int

	// admitted is the last shared waiter that nobody exclusive is ahead of; nil: none.
	admitted *waiter
	// closed: of the shared waiters only the leader tries, until one has acquired the lock. It is
	// set when a shared attempt fails, or when an exclusive waiter that was ahead has left.
	closed bool

	known   outcome // of the latest attempt of anyone here that others may know of
	silence silence // since the last answer or grant
	timing  timing  // of attempts

	// of the leaders; the second one is of shared requests if the strategy orders the modes
	subscriptions [2]subscription

	placed   bool         // this process may have a place at the server
	turn     turn         // of this process
	vacancy  vacancy      // since the latest release here
	next     *waiter      // was woken by a release that is not answered yet, and that leaves the lock to it
	owedWake *wakingLease // the lease of the latest release that relied on a waiter here, until one begins to try

	notBefore time.Time // the leaders make no attempt
}

// line is a list of waiters of one mode.
type line struct {
	first, last *waiter
	leader      *waiter // first, or nil where the other line is ahead
}

// hasWaiters reports whether a request of this process is in the queue of name.
func (qs *queues) hasWaiters(name string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byName[name] != nil
}

// enter takes a place at the end of name's queue, for an acquire that began to wait at since. alone:
// nobody is ahead, and its first attempt begins at now. listens: there is a subscription for it.
func (qs *queues) enter(
	name string, since time.Time, shared bool, owner string, now time.Time,
) (w *waiter, listens, alone bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if alone = q == nil; alone {
		made := new(struct { // one allocation for both
			queue  queue
			waiter waiter
		})
		q, w = &made.queue, &made.waiter
		q.all, q.name = qs, name
		qs.byName[name] = q
		q.placed = qs.takePlace(name)
		qs.unpark(q)
	} else {
		w = new(waiter)
	}
	q.entered++
	*w = waiter{queue: q, number: q.entered, since: since, shared: shared, queued: q.size, owner: owner}
	w.mayReenter = qs.reenters && w.ownedBy(q.known)
	q.size++
	line := q.line(shared)
	w.ahead = line.last
	if line.last == nil {
		line.first = w
	} else {
		line.last.behind = w
	}
	line.last = w
	q.advance(w)
	if alone {
		w.begin(send, now)
	}
	return w, w.subscription().sub != nil, alone
}

func (q *queue) line(shared bool) *line { return &q.lines[lineOf(shared)] }

// lineOf is the index of a mode's line.
func lineOf(shared bool) int {
	if shared {
		return 1
	}
	return 0
}

// leave gives up the place, unless w has left it.
func (w *waiter) leave() {
	if w.left { // only w's own goroutine sets it
		return
	}
	q := w.queue
	q.all.mu.Lock()
	left := q.remove(w, false)
	q.all.mu.Unlock()
	left.close()
}

// remove takes w out, which has acquired the lock or given up. It returns what is to be closed
// without mu, if w was the last one.
func (q *queue) remove(w *waiter, acquired bool) (left remains) {
	w.left, w.won = true, acquired
	line := q.line(w.shared)
	if q.admitted == w {
		q.admitted = w.ahead
	}
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
	if !acquired && line.first == nil {
		q.leaveLine(w, &left)
	}
	if w.owedWake != nil && q.owedWake == nil {
		q.owedWake = w.owedWake // it gives up without an answer
	}
	if w.asking {
		w.cutOff(time.Now())
	}
	if q.size == 0 {
		delete(q.all.byName, q.name)
		if q.all.strategy.queues && q.placed {
			q.all.leavePlace(q.name)
		}
		if q.owedWake != nil {
			if left.id != "" {
				left.queue = nil // that removes the place too
			}
			go q.owedWake.wakeOthers()
		}
		if len(q.all.byName) == 0 {
			left.unwatch = q.all.endWatch()
		}
		if !q.all.park(q, acquired) {
			left.subs = [2]driver.Subscription{q.subscriptions[0].stop(), q.subscriptions[1].stop()}
		}
		return left
	}
	if w.shared && line.first == nil {
		q.closed = false
		if !acquired && q.all.strategy.ordered {
			left.subs[1] = q.subscriptions[1].drop() // the server would count a reader here
		}
	}
	q.advance(nil)
	return left
}

// leaveLine is called when w, the last waiter of its line, has given up: the server would keep
// others from the lock for it. mu is held.
func (q *queue) leaveLine(w *waiter, left *remains) {
	switch {
	case q.all.leaver == nil:
	case w.shared && w.placed && q.all.strategy.ordered:
		left.queue = q
	case !w.shared && q.placed && (q.all.strategy.fair || q.all.strategy.ordered):
		left.queue, left.id, q.placed = q, q.all.id, false
	}
}

// remains is what a waiter leaves.
type remains struct {
	queue   *queue                 // the server counts its waiters, which are gone; nil: of none
	id      string                 // of the place to remove; "": of readers
	subs    [2]driver.Subscription // of a queue that has emptied
	unwatch func() bool
}

func (r remains) close() {
	closeSubs(r.subs)
	if r.unwatch != nil {
		r.unwatch()
	}
	if r.queue != nil {
		all, name := r.queue.all, r.queue.name
		all.leaver.Leave(name, r.id, func() { all.tryAgain(name) })
	}
}

// tryAgain makes the leaders of name's queue try again: they may have lost their place at the
// server.
func (qs *queues) tryAgain(name string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[name]; q != nil {
		q.wakeLeaders(locktrace.ByTurn)
	}
}

// advance determines the leaders and the other waiters that may send, and wakes those that could
// not before, except entering.
func (q *queue) advance(entering *waiter) {
	for i := range q.lines {
		line := &q.lines[i]
		leader := line.first
		if leader != nil && !q.admits(leader) {
			leader = nil
		}
		if leader != line.leader {
			if line.leader == nil && leader != entering && leader.shared {
				// An exclusive waiter was ahead, and may have the lock: the others wait for the
				// leader's answer.
				q.closed = true
			}
			line.leader = leader
			if leader != nil && leader != entering {
				leader.notify(locktrace.ByTurn)
			}
		}
	}
	for {
		next := q.line(true).first
		if q.admitted != nil {
			next = q.admitted.behind
		}
		if next == nil || !q.admits(next) {
			break
		}
		q.admitted = next
		if next != entering && !q.closed && !next.leads() {
			next.notify(locktrace.ByTurn)
		}
	}
}

// open wakes all shared waiters with no exclusive waiter ahead of them, to try.
func (q *queue) open() {
	if !q.closed {
		return
	}
	q.closed = false
	for w := q.line(true).first; w != nil && q.admits(w); w = w.behind {
		w.notify(locktrace.ByTurn)
	}
}

// admits reports whether no waiter of the other mode is ahead of w, or the strategy orders the
// modes.
func (q *queue) admits(w *waiter) bool {
	other := q.line(!w.shared).first
	return q.all.strategy.ordered || other == nil || w.number < other.number
}

// wakeLeaders wakes the leaders.
func (q *queue) wakeLeaders(by locktrace.WakeReason) {
	for i := range q.lines {
		if w := q.lines[i].leader; w != nil {
			w.notify(by)
		}
	}
}

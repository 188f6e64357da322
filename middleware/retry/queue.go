package retry

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// queues are the queues of one wrapped Locker, one for each name that somebody is acquiring.
//
// mu guards all that this file, answers.go and subscribe.go declare: the map, the queues, the waiters and the subscriptions.
// It is held for a few steps, and never while foreign code runs: an attempt, a policy, a trace callback, a driver.
//
// While mu is free:
//
//  1. A queue is in byName as long as it has a waiter. One that has emptied is never used again.
//  2. Each line has at most one leader, its first waiter. There is always a leader, and only leaders poll.
//  3. A waiter that [queue.step] lets send, and did not before, has a reason in its wake channel, or has taken it out.
//  4. Whoever entered leaves, by a defer, whatever happens to it: so a queue cannot get stuck behind one that gave up
//     or panicked.
//
// No wake-up is lost while somebody waits: it stays in a waiter's channel, or in the subscription's, until an attempt is sent
// after it was heard. If that waiter gives up instead, its successor tries at once when it becomes the leader.
type queues struct {
	mu     sync.Mutex
	byName map[string]*queue
}

func newQueues() *queues { return &queues{byName: map[string]*queue{}} }

// queue holds those who acquire one name, in a line for each mode. Waiters are numbered in the order in which they entered.
type queue struct {
	all     *queues
	name    string
	lines   [2]line // exclusive, shared
	entered int     // the number of the latest waiter
	size    int

	// ordered: the strategy decides between the modes (ContentionError.Ordered), so that both lines have a leader. Otherwise
	// a line has one while its first waiter entered before that of the other.
	ordered bool
	// admitted is the last shared waiter that nobody exclusive is ahead of; nil: none.
	admitted *waiter
	// closed: the latest answer to a shared request was not the lock. Until one is acquired, only the leader tries.
	closed bool

	early   early
	owned   int                           // waiters that have an owner
	owing   struct{ first, last *waiter } // those who owe
	reentry reentry
	known   outcome // of the latest attempt of anyone here that others may know of
	// unanswered is when the first attempt since the last answer began; zero: there was none.
	unanswered time.Time
	timing     timing // of attempts
	hearing    hearing
}

// line is a list of waiters of one mode.
type line struct {
	first, last *waiter
	leader      *waiter // first, or nil where the other line is ahead
}

// early are the attempts of those who have an owner and may not send otherwise: one at a time.
type early struct {
	waiter    *waiter   // whose attempt is under way; nil: none
	watcher   *waiter   // who was told last that it is next
	since     time.Time // when that began
	notBefore time.Time // the pause after an error
}

// earlyPatience is how long the next early attempt waits for one that is not answered.
const earlyPatience = 250 * time.Millisecond

// waiter is one place in a queue.
type waiter struct {
	queue         *queue
	ahead, behind *waiter                         // in its line
	owing         struct{ ahead, behind *waiter } // among those who owe
	number        int
	shared        bool
	queued        int    // how many were ahead when it entered
	owner         string // "": none was asked for
	owes          bool   // it has an owner, and does not know whether that holds the lock
	trying        bool   // its early attempt is under way
	began         int    // queue.entered when its latest attempt began
	left          bool
	// wake holds at most one reason to try again. It is made when the waiter first waits or is first woken: one that gets
	// its lock at the first attempt has none.
	wake chan locker.WakeReason
}

// step is what a waiter does next.
type step int

const (
	stay      step = iota // wait
	send                  // make an attempt
	sendEarly             // make an attempt that leaves nothing behind where it is refused
	late                  // an attempt would take longer than its time
)

// enter takes a place at the end of name's queue.
func (qs *queues) enter(name string, shared bool, owner string) *waiter {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		q = &queue{all: qs, name: name}
		qs.byName[name] = q
	}
	q.entered++
	w := &waiter{queue: q, number: q.entered, shared: shared, queued: q.size, owner: owner}
	if owner != "" {
		q.owned++
		w.setOwes(true)
	}
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
	return w
}

func (q *queue) line(shared bool) *line {
	if shared {
		return &q.lines[1]
	}
	return &q.lines[0]
}

// leave gives up the place. It may be called again.
func (w *waiter) leave() {
	q := w.queue
	q.all.mu.Lock()
	sub := q.remove(w)
	q.all.mu.Unlock()
	closeSub(sub)
}

// remove takes w out. Where it was the last one, it returns the subscription, to be closed without mu.
func (q *queue) remove(w *waiter) driver.Subscription {
	if w.left {
		return nil
	}
	w.left = true
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
	if w.owner != "" {
		q.owned--
		w.setOwes(false)
	}
	q.endEarly(w)
	if q.size == 0 {
		delete(q.all.byName, q.name)
		return q.hearing.stop()
	}
	if w.shared && line.first == nil {
		q.closed = false
	}
	q.advance(nil)
	return nil
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
				q.closed = true // somebody exclusive was ahead, who may have got in: the others wait for what the leader is told
			}
			line.leader = leader
			if leader != nil {
				leader.setOwes(false)
			}
			if leader != nil && leader != entering {
				leader.tell(locker.ByTurn)
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
		next.setOwes(false)
		if next != entering && !q.closed && !next.leads() {
			next.tell(locker.ByTurn)
		}
	}
	if next := q.nextEarly(); next != nil && (q.early.waiter == nil || next != q.early.watcher) {
		q.early.watcher = next
		if next != entering {
			next.tell(locker.ByTurn)
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
		w.tell(locker.ByTurn)
	}
}

// admits reports whether no waiter of the other mode is ahead of w, or the strategy orders the
// modes.
func (q *queue) admits(w *waiter) bool {
	other := q.line(!w.shared).first
	return q.ordered || other == nil || w.number < other.number
}

// leads tells whether w is the leader of its line.
func (w *waiter) leads() bool { return w.queue.line(w.shared).leader == w }

// next returns w's next step and, if that is stay, the time to call next again (zero: when woken).
// due says that a leader has a reason to send. end is the end of w's ctx.
func (w *waiter) next(now time.Time, due bool, end time.Time) (step, time.Time) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	s, until := q.step(w, now, due)
	over := !end.IsZero() && !now.Before(end) // though ctx has not ended: its timer is late
	if s != stay && (over || q.known.held != nil && q.timing.tooLate(now, end, 1)) {
		return late, time.Time{}
	}
	return s, until
}

// begin is called before w sends. The attempt covers all wake-ups until now, so begin discards
// them.
func (w *waiter) begin(s step) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	w.began = q.entered
	now := time.Now()
	if q.unanswered.IsZero() {
		q.unanswered = now
	}
	if s == sendEarly {
		w.trying, q.early.waiter, q.early.since = true, w, now
		if next := q.nextEarly(); next != nil {
			q.early.watcher = next
			next.tell(locker.ByTurn) // it watches the time now
		}
		return // keep the wake-up: it may say that w leads now
	}
	select {
	case <-w.wake: // nil where w has never waited
	default:
	}
	select {
	case <-q.hearing.wake:
		q.wakeLeaders(locker.ByRelease, w)
	default:
	}
}

func (q *queue) step(w *waiter, now time.Time, due bool) (step, time.Time) {
	switch {
	case w.leads():
		if due {
			return send, time.Time{}
		}
		return stay, time.Time{}
	case w.shared && q.admits(w):
		if !q.closed {
			return send, time.Time{}
		}
		return stay, time.Time{}
	case !w.owes:
		return stay, time.Time{}
	case q.reentry.proven(w.owner):
		return sendEarly, time.Time{}
	case w != q.nextEarly():
		return stay, time.Time{}
	}
	until := q.early.notBefore
	if q.early.waiter != nil {
		until = q.early.since.Add(earlyPatience)
	}
	if now.Before(until) {
		return stay, until
	}
	return sendEarly, time.Time{}
}

// nextEarly is the waiter that is to make the next early attempt: of those who owe, the first that is not trying.
func (q *queue) nextEarly() *waiter {
	w := q.owing.first
	for w != nil && w.trying {
		w = w.owing.behind
	}
	return w
}

// endEarly makes room for the next early attempt where that of w was under way.
func (q *queue) endEarly(w *waiter) {
	w.trying = false
	if q.early.waiter == w {
		q.early.waiter = nil
	}
}

// setOwes keeps whether w owes. Those who may send in their turn find out by that.
func (w *waiter) setOwes(owes bool) {
	q := w.queue
	owes = owes && !w.leads() && (!w.shared || !q.admits(w))
	if w.owes == owes {
		return
	}
	w.owes = owes
	if owes {
		w.owing.ahead = q.owing.last
		if q.owing.last == nil {
			q.owing.first = w
		} else {
			q.owing.last.owing.behind = w
		}
		q.owing.last = w
		return
	}
	if w.owing.ahead == nil {
		q.owing.first = w.owing.behind
	} else {
		w.owing.ahead.owing.behind = w.owing.behind
	}
	if w.owing.behind == nil {
		q.owing.last = w.owing.ahead
	} else {
		w.owing.behind.owing.ahead = w.owing.ahead
	}
	w.owing.ahead, w.owing.behind = nil, nil
}

// wakeLeaders wakes the leaders, except except.
func (q *queue) wakeLeaders(by locker.WakeReason, except *waiter) {
	for i := range q.lines {
		if w := q.lines[i].leader; w != nil && w != except {
			w.tell(by)
		}
	}
}

// tell puts by into w's channel unless there is a reason already.
func (w *waiter) tell(by locker.WakeReason) {
	select {
	case w.channel() <- by:
	default:
	}
}

func (w *waiter) channel() chan locker.WakeReason {
	if w.wake == nil {
		w.wake = make(chan locker.WakeReason, 1)
	}
	return w.wake
}

// listen returns what w has to listen to while it waits. released is nil unless it leads and there is a subscription.
func (w *waiter) listen() (wake <-chan locker.WakeReason, released <-chan struct{}, leads bool) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if leads = w.leads(); leads {
		released = q.hearing.wake
	}
	return w.channel(), released, leads
}

// pass wakes the other leader with what w received from the subscription.
func (w *waiter) pass(by locker.WakeReason) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.queue.wakeLeaders(by, w)
}

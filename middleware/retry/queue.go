package retry

import (
	"sync"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

// queues are the queues of one wrapped Locker, one for each name that somebody is acquiring.
//
// mu guards all that this file and subscribe.go declare: the map, the queues, the waiters and the subscriptions. It is held
// for a few steps, and never while foreign code runs: an attempt, a policy, a trace callback, a driver.
//
// While mu is free:
//
//  1. A queue is in byName as long as it has a waiter. One that has emptied is never used again.
//  2. The waiters from first to frontier may send, and no others: the first alone, or where it is shared, all shared ones
//     before the first exclusive one. There is always at least one.
//  3. Who comes to be allowed to send after it entered has ByTurn in its wake channel, or has taken it out.
//  4. Whoever entered leaves once, by a defer, whatever happens to it: so a queue cannot get stuck behind one that gave up
//     or panicked.
//
// No wake-up is lost while somebody waits: it stays in a waiter's channel, or in the subscription's, until an attempt is sent
// after it was heard. If that waiter gives up instead, its successor tries at once when it gets its turn, and the others of a
// shared group were told when it took the wake-up out.
type queues struct {
	mu     sync.Mutex
	byName map[string]*queue
}

func newQueues() *queues { return &queues{byName: map[string]*queue{}} }

// queue is a line of those who acquire one name.
type queue struct {
	all         *queues
	name        string
	first, last *waiter
	frontier    *waiter // the last one that may send
	size        int
	known       outcome // of the latest attempt of anyone here that others may know of; none after a success
	hearing     hearing
}

// waiter is one place in a queue.
type waiter struct {
	queue         *queue
	ahead, behind *waiter
	shared        bool
	queued        int // how many were ahead when it entered
	// wake holds at most one reason to try again. It is made when the waiter first waits or is first woken: one that gets
	// its lock at the first attempt has none.
	wake chan locker.WakeReason
}

// enter takes a place at the end of name's queue. first tells that it may send at once; else it must wait for its turn.
func (qs *queues) enter(name string, shared bool) (w *waiter, first bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byName[name]
	if q == nil {
		q = &queue{all: qs, name: name}
		qs.byName[name] = q
	}
	w = &waiter{queue: q, shared: shared, ahead: q.last, queued: q.size}
	if q.last == nil {
		q.first = w
	} else {
		q.last.behind = w
	}
	q.last = w
	q.size++
	q.advance(w)
	return w, q.frontier == w
}

// leave gives up the place. acquired tells that its waiter has the lock now.
func (w *waiter) leave(acquired bool) {
	q := w.queue
	q.all.mu.Lock()
	if acquired {
		q.known = outcome{}
	}
	q.remove(w)
	var sub driver.Subscription
	if q.first == nil {
		delete(q.all.byName, q.name)
		sub = q.hearing.stop()
	} else {
		q.advance(nil)
	}
	q.all.mu.Unlock()
	closeSub(sub)
}

// remove unlinks w.
func (q *queue) remove(w *waiter) {
	if q.frontier == w {
		q.frontier = w.ahead
	}
	if w.ahead == nil {
		q.first = w.behind
	} else {
		w.ahead.behind = w.behind
	}
	if w.behind == nil {
		q.last = w.ahead
	} else {
		w.behind.ahead = w.ahead
	}
	q.size--
}

// advance moves the frontier as far as invariant 2 says, and gives those whom it passes their turn. entering needs no telling.
func (q *queue) advance(entering *waiter) {
	for {
		next := q.first
		if q.frontier != nil {
			next = q.frontier.behind
			if next == nil || !next.shared || !q.frontier.shared {
				return
			}
		}
		if q.frontier = next; next == nil {
			return
		}
		if next != entering {
			next.tell(locker.ByTurn)
		}
	}
}

// wakeAll tells all who may send, but except.
func (q *queue) wakeAll(by locker.WakeReason, except *waiter) {
	for w := q.first; w != nil && w.ahead != q.frontier; w = w.behind {
		if w != except {
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

// wakeUp tells those at the head of name's queue, if there is one, that the lock may be free.
func (qs *queues) wakeUp(name string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[name]; q != nil {
		q.wakeAll(locker.ByRelease, nil)
	}
}

// record keeps the outcome of w's attempt for those who never got to send.
func (w *waiter) record(o outcome) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.queue.known = o
}

// known returns the last recorded outcome.
func (w *waiter) known() outcome {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	return w.queue.known
}

// listen returns what w has to listen to while it waits. released is nil where there is no subscription.
func (w *waiter) listen() (wake <-chan locker.WakeReason, released <-chan struct{}) {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	return w.channel(), q.hearing.wake
}

// pass tells the others at the head what w took out of the subscription.
func (w *waiter) pass(by locker.WakeReason) {
	w.queue.all.mu.Lock()
	defer w.queue.all.mu.Unlock()
	w.queue.wakeAll(by, w)
}

// proceed is called before w sends again. The attempt will answer what was heard until now: w forgets it.
func (w *waiter) proceed() {
	q := w.queue
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	select {
	case <-q.hearing.wake:
		q.wakeAll(locker.ByRelease, w)
	default:
	}
	select {
	case <-w.channel():
	default:
	}
}

package retry

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// queues are the queues of one wrapped Locker, one for each name that somebody is acquiring.
//
// mu guards the map, the queues, their waiters, batons and subscriptions. It is held for a few steps,
// and never while foreign code runs: an attempt, a policy, a trace callback, a driver.
//
// While mu is free:
//
//  1. A queue is in byName as long as it has a waiter. One that has emptied is never used again.
//  2. Each line has at most one leader, its first waiter. There is always a leader, and only
//     leaders poll.
//  3. A waiter that [view.next] lets send, and did not before, has a reason in its wake channel,
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

	// leftPlaces are until when this process may have a place at the server, of the names for which
	// nobody waits any more.
	leftPlaces    map[string]time.Time
	sweepPlacesAt int // how many there are when those that are over are removed

	watch   sync.Once // makes Close set closing
	closing bool      // every attempt fails: a driver is being closed
}

func newQueues(inner locker.Locker) *queues {
	leaver, _ := locker.As[lease.Leaver](inner)
	return &queues{
		leaver: leaver, reenters: reenters(inner), id: lease.NewToken(),
		byName: map[string]*queue{}, parked: map[string]*parkedSubscriptions{},
		leftPlaces: map[string]time.Time{}, sweepPlacesAt: 64,
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

// learnStrategy keeps what a refusal says of the strategy. mu is held.
func (qs *queues) learnStrategy(held *locker.ContentionError) {
	if held.Queue {
		qs.strategy.queues, qs.strategy.fair = true, held.Fair
	}
	if !held.Ordered || qs.strategy.ordered {
		return
	}
	for _, q := range qs.byName {
		for i := range q.lines {
			if w := q.lines[i].first; w != nil && !q.admits(w) {
				q.sharedClosed = q.sharedClosed || w.shared
				w.notify(locktrace.ByTurn) // it leads now
			}
		}
	}
	qs.strategy.ordered = true
}

// hasWaiters reports whether a request of this process is in the queue of name.
func (qs *queues) hasWaiters(name string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byName[name] != nil
}

// acquiredOutsideQueue is for a lock that was acquired without queueing.
func (qs *queues) acquiredOutsideQueue(lock *locker.Lock, note string, alone bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[lock.Name()]; q != nil {
		q.recordAcquire(lock, note, alone, nil)
	}
}

// known returns what is known to a request that waits behind those in the queue of name, and for how
// long the queue has waited for an answer if that is an outage.
func (qs *queues) known(name string, now time.Time) (o outcome, outage time.Duration) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	o = assumedHeld(name, now)
	q := qs.byName[name]
	if q == nil {
		return o, 0
	}
	if !q.answers.latest.at.IsZero() {
		o = q.answers.latest
	}
	return o, q.answers.outage(o, now)
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

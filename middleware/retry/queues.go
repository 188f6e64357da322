package retry

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/locker/locktrace"
)

// queues are the queues of one wrapped Locker, one for each name with waiters.
//
// mu guards the map, the queues, their waiters, batons and subscriptions. It is held for a few steps,
// and never while foreign code runs: an attempt, a policy, a trace callback, a driver.
//
// While mu is free:
//
//  1. A queue is in byName as long as it has a waiter. One that has emptied is never used again.
//  2. Each line has at most one leader, its first waiter. There is always a leader, and only
//     leaders poll.
//  3. When [view.next] begins to let a waiter send, the waiter gets a reason in its wake channel.
//  4. Each waiter leaves by a defer: no queue gets stuck behind a waiter that gave up or panicked.
//
// No wake-up is lost while somebody of this process waits: it stays in a waiter's channel, or in
// the subscription's, until a later attempt begins. If the waiter gives up instead, the next leader
// tries at once. If the last waiter gives up, see baton.
type queues struct {
	leaver   lease.Leaver // nil: later commands remove places in the server's queue
	reenters bool         // an owner may acquire its lock again
	// ordered: the strategy decides between the modes, and both lines of a queue have a leader.
	// Otherwise the line of the earliest waiter has the only one.
	ordered bool

	mu     sync.Mutex
	server serverQueue
	byName map[string]*queue
	id     string // of the places in the server's queues, one for each name
	parked map[string]*parkedSubscription

	// leftPlaces has the end of each place that this process may have left in a server's queue, by
	// name. Nobody waits for these names.
	leftPlaces    map[string]time.Time
	sweepPlacesAt int // number of leftPlaces at which the expired are removed

	watch   sync.Once // makes Close set closing
	closing bool      // every attempt fails: a driver is being closed
}

func newQueues(inner locker.Locker) *queues {
	leaver, _ := lease.Find[lease.Leaver](inner)
	traits := lease.TraitsOf(inner)
	return &queues{
		leaver: leaver, reenters: traits.Reentrant, ordered: traits.Ordered, id: lease.NewToken(),
		byName: map[string]*queue{}, parked: map[string]*parkedSubscription{},
		leftPlaces: map[string]time.Time{}, sweepPlacesAt: 64,
	}
}

// serverQueue holds the properties of the queues of waiters at the server, from refusals. They are the
// same for all names.
type serverQueue struct {
	used bool // there are such queues
	fair bool // their order is strict
}

// hasWaiters reports whether a request of this process is in the queue of name.
func (qs *queues) hasWaiters(name string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byName[name] != nil
}

// acquiredOutsideQueue records an acquire by a request outside the queue.
func (qs *queues) acquiredOutsideQueue(lock *locker.Lock, note string, alone bool) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[lock.Name()]; q != nil {
		q.recordAcquire(lock, note, alone, nil)
	}
}

// known returns the outcome known to a request behind the queue of name, and the length of an outage, or
// zero.
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

// tryAgain wakes the leaders of name's queue: their place may have been removed at the server.
func (qs *queues) tryAgain(name string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.byName[name]; q != nil {
		q.wakeLeaders(locktrace.ByTurn)
	}
}

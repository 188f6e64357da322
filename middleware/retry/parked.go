package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// parkTime is how long the subscription of a queue that has emptied is kept.
	parkTime = time.Second
	// maxParked is how many are kept at a time.
	maxParked = 1000
)

// parkedSubscriptions are those of a queue whose last waiter acquired the lock. A process that
// acquires a contended name again and again then subscribes once.
type parkedSubscriptions struct {
	of    [2]subscription
	timer *time.Timer // closes them
}

// park keeps the subscription of q for a while, and reports whether it did. After a waiter that gave
// up it does not: a release would wake this process, where nobody waits. mu is held.
func (qs *queues) park(q *queue, acquired bool) bool {
	if !acquired || !q.atServer || q.subscriptions[0].sub == nil || len(qs.parked) >= maxParked {
		return false
	}
	for i := range q.subscriptions {
		if q.subscriptions[i].cancel != nil {
			return false
		}
	}
	p := &parkedSubscriptions{of: q.subscriptions}
	p.timer = time.AfterFunc(parkTime, func() { qs.closeParked(q.name, p) })
	qs.parked[q.name] = p
	return true
}

// unpark gives a new queue the subscriptions of the one before. mu is held.
func (qs *queues) unpark(q *queue) {
	if p := qs.parked[q.name]; p != nil {
		p.timer.Stop()
		delete(qs.parked, q.name)
		q.subscriptions, q.atServer = p.of, true
	}
}

func (qs *queues) closeParked(name string, p *parkedSubscriptions) {
	qs.mu.Lock()
	mine := qs.parked[name] == p
	if mine {
		delete(qs.parked, name)
	}
	qs.mu.Unlock()
	if mine {
		closeSubs([2]driver.Subscription{p.of[0].sub, p.of[1].sub})
	}
}

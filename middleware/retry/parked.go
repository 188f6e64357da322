package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// parkTime is for how long the subscriptions of an empty queue are kept.
	parkTime = time.Second
	// maxParked is for how many names they are kept at a time.
	maxParked = 1000
)

// parkedSubscriptions are the subscriptions of a queue whose last waiter acquired the lock. They
// are kept so that a process that acquires a contended name again and again subscribes once.
type parkedSubscriptions struct {
	subs  [2]*subscription
	timer *time.Timer // closes them
}

// park keeps the subscriptions of q for parkTime, and reports whether it did. It does not if the
// last waiter gave up: a release would wake this process, where nobody waits. mu is held.
func (qs *queues) park(q *queue, acquired bool) bool {
	if !acquired || !qs.strategy.queues || !q.lines[0].subscription.made() || len(qs.parked) >= maxParked {
		return false
	}
	p := &parkedSubscriptions{}
	for i := range q.lines {
		if p.subs[i] = q.lines[i].subscription; p.subs[i].underWay() {
			return false
		}
	}
	p.timer = time.AfterFunc(parkTime, func() { qs.closeParked(q.name, p) })
	qs.parked[q.name] = p
	return true
}

// unpark gives q the subscriptions that were parked for its name, if any. mu is held.
func (qs *queues) unpark(q *queue) {
	if p := qs.parked[q.name]; p != nil {
		p.timer.Stop()
		delete(qs.parked, q.name)
		for i := range q.lines {
			q.lines[i].subscription = p.subs[i]
		}
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
		closeSubs([2]driver.Subscription{p.subs[0].stop(), p.subs[1].stop()})
	}
}

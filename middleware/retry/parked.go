package retry

import (
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// parkTime is the time to keep the subscriptions of an empty queue.
	parkTime = time.Second
	// maxParked is the maximum number of names with parked subscriptions.
	maxParked = 1000
)

// parkedSubscriptions are the subscriptions of an empty queue whose last waiter acquired the lock. A
// process that acquires a contended name again and again then subscribes once.
type parkedSubscriptions struct {
	subs  [2]*subscription
	timer *time.Timer // closes them
}

// park keeps the subscriptions of q for parkTime, and reports whether it did. If the last waiter gave
// up, park does not: releases would wake a process without waiters. mu is held.
func (qs *queues) park(q *queue, acquired bool) bool {
	if !acquired || !qs.server.used || !q.lines[0].subscription.made() || len(qs.parked) >= maxParked {
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

// unpark gives q the parked subscriptions of its name, if any. mu is held.
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

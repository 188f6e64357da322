package retry

import "time"

const (
	// parkTime is the time to keep the subscription of an empty queue.
	parkTime = time.Second
	// maxParked is the maximum number of names with a parked subscription.
	maxParked = 1000
)

// parkedSubscription is the subscription of an empty queue whose last waiter acquired the lock. A
// process that acquires a contended name again and again then subscribes once.
type parkedSubscription struct {
	*subscription
	timer *time.Timer // closes it
}

// park keeps the subscription of q for parkTime, and reports whether it did. If the last waiter gave
// up, park does not: releases would wake a process without waiters. mu is held.
func (qs *queues) park(q *queue, acquired bool) bool {
	h := q.lines[0].subscription
	if !acquired || !qs.server.used || !h.made() || len(qs.parked) >= maxParked {
		return false
	}
	p := &parkedSubscription{subscription: h}
	p.timer = time.AfterFunc(parkTime, func() { qs.closeParked(q.name, p) })
	qs.parked[q.name] = p
	return true
}

// unpark gives q the parked subscription of its name, if any. mu is held.
func (qs *queues) unpark(q *queue) {
	if p := qs.parked[q.name]; p != nil {
		p.timer.Stop()
		delete(qs.parked, q.name)
		q.lines[0].subscription = p.subscription
	}
}

func (qs *queues) closeParked(name string, p *parkedSubscription) {
	qs.mu.Lock()
	mine := qs.parked[name] == p
	if mine {
		delete(qs.parked, name)
	}
	qs.mu.Unlock()
	if mine {
		closeSub(p.sub)
	}
}

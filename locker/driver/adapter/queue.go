package adapter

// queue is a list of commands, linked by themselves.
type queue struct{ first, last *Command }

// push adds c at the end.
func (q *queue) push(c *Command) {
	c.queued, c.prev = true, q.last
	if q.last == nil {
		q.first = c
	} else {
		q.last.next = c
	}
	q.last = c
}

// remove removes c from q.
func (q *queue) remove(c *Command) {
	if c.prev == nil {
		q.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		q.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.queued, c.prev, c.next = false, nil, nil
}

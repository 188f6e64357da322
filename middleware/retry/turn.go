package retry

import "time"

const (
	// shortTurn and longTurn bound the length of a turn of this process, from the acquire that
	// begins it. A release within a turn wakes the next waiter of this process and no other
	// process, which saves the round trips that a change of process takes. After shortTurn, a turn
	// ends as soon as all waiters that waited when it began have had the lock.
	shortTurn = time.Millisecond
	longTurn  = 3 * time.Millisecond
	// turnSlack is how long after longTurn the leader still waits for a release of this process
	// before it takes a place at the server.
	turnSlack = time.Millisecond
	// minYield is the minimum time for which the waiters of this process make no attempt while
	// another process has its turn.
	minYield = time.Millisecond
)

// turn is a turn of this process, or of another that a release here woke. The zero turn is over.
type turn struct {
	others bool
	began  time.Time
	last   int // of this process: the number of the last waiter in the queue when it began
}

// serves reports whether a release at now leaves the lock to w, a waiter of this process.
func (t turn) serves(w *waiter, now time.Time) bool {
	return !t.others &&
		(now.Before(t.began.Add(shortTurn)) || now.Before(t.began.Add(longTurn)) && w.number <= t.last)
}

// yields reports whether another process has its turn.
func (t turn) yields(now time.Time) bool { return t.others && now.Before(t.began.Add(minYield)) }

// quietUntil returns the time until which a leader sends no attempt unless a release here wakes it.
// relies: this process holds the lock, and will wake the leader.
func (t turn) quietUntil(relies bool) time.Time {
	switch {
	case t.others:
		return t.began.Add(minYield)
	case relies:
		return t.began.Add(longTurn + turnSlack)
	default:
		return time.Time{}
	}
}

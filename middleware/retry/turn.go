package retry

import "time"

const (
	// shortTurn and longTurn bound the length of a turn of this process, from its first acquire. A
	// release within a turn wakes the next waiter of this process and no other process: this saves
	// the round trips of a change of process. After shortTurn, a turn ends as soon as all waiters
	// from its beginning have had the lock.
	shortTurn = time.Millisecond
	longTurn  = 3 * time.Millisecond
	// turnSlack is the time after longTurn for which the leader still waits for a release of this
	// process, before it takes a place at the server.
	turnSlack = time.Millisecond
	// minYield is the time without attempts of this process's leaders after a release here woke
	// another process.
	minYield = time.Millisecond
)

// turn is a turn of this process, or of another process woken by a release here. The zero turn is over.
type turn struct {
	began time.Time
	last  int // number of the last waiter in the queue at its beginning; zero: another process's turn
}

func (t turn) others() bool { return t.last == 0 }

// serves reports whether a release at now leaves the lock to w, a waiter of this process.
func (t turn) serves(w *waiter, now time.Time) bool {
	return !t.others() &&
		(now.Before(t.began.Add(shortTurn)) || now.Before(t.began.Add(longTurn)) && w.number <= t.last)
}

// yields reports whether the leaders leave the lock to another process.
func (t turn) yields(now time.Time) bool { return t.others() && now.Before(t.began.Add(minYield)) }

// quietUntil returns the time before which a leader sends no attempt. heldHere: this process holds
// the lock; its release wakes the leader and ends the quiet time.
func (t turn) quietUntil(heldHere bool) time.Time {
	switch {
	case t.others():
		return t.began.Add(minYield)
	case heldHere:
		return t.began.Add(longTurn + turnSlack)
	default:
		return time.Time{}
	}
}

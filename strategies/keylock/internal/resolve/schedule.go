package resolve

import "time"

const (
	minPause = 10 * time.Millisecond
	maxPause = time.Second
	// maxAgedPause is the longest pause, which tries of an old residue reach.
	maxAgedPause = 30 * time.Second
	// lateAnswerWait is how long the first try waits if late answers can still come. They mostly
	// do.
	lateAnswerWait = 20 * time.Millisecond
	// finalAnswerWait is how long the last try waits, when the driver closes, for what was sent
	// before it.
	finalAnswerWait = 100 * time.Millisecond
)

// pause returns the time until the next try of a clean-up that was tried tries times in age: 10 ms
// doubling to 1 s, and a thirtieth of age, at most maxAgedPause, after half a minute.
func pause(tries int, age time.Duration) time.Duration {
	if age > 30*maxPause {
		return min(age/30, maxAgedPause)
	}
	return min(minPause<<min(max(tries, 1)-1, 10), maxPause)
}

// All residues of a driver share a budget. It bounds repetitions to 1,000 per second of residues
// whose tries all failed, or 100 per second of those with an answer. The first try of a residue is
// free, and so is the first one to remove a hold once it is known to be there: there are no more of
// them than acquires.
const (
	budgetMax    = 1000
	budgetPerSec = 1000
	costSilent   = 1
	costAnswered = 10
)

// cost is what the next try of a residue costs. found: a hold is known to be there, and the last
// try did not fail.
func cost(tries int, answered, found bool) int {
	switch {
	case tries == 0 || found:
		return 0
	case answered:
		return costAnswered
	default:
		return costSilent
	}
}

// budget is what is left to spend, as of a time. The zero budget is full.
type budget struct {
	spent float64
	at    time.Time
}

// spend takes n if it is there.
func (b *budget) spend(n int, now time.Time) bool {
	if n == 0 {
		return true
	}
	b.refill(now)
	if b.spent+float64(n) > budgetMax {
		return false
	}
	b.spent += float64(n)
	return true
}

// wait is how long it takes until n are there.
func (b *budget) wait(n int, now time.Time) time.Duration {
	b.refill(now)
	short := max(b.spent+float64(n)-budgetMax, 0)
	return time.Duration(short / budgetPerSec * float64(time.Second))
}

func (b *budget) refill(now time.Time) {
	b.spent = max(b.spent-now.Sub(b.at).Seconds()*budgetPerSec, 0)
	b.at = now
}

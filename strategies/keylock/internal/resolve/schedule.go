package resolve

import "time"

const (
	minPause = 10 * time.Millisecond
	maxPause = time.Second
	// maxAgedPause is the longest pause, for an old residue.
	maxAgedPause = 30 * time.Second
	// The first try waits for lateAnswerWait if late answers can still come. They mostly do.
	lateAnswerWait = 20 * time.Millisecond
	// finalAnswerWait is the pause before the last try in a Close, for earlier commands.
	finalAnswerWait = 100 * time.Millisecond
)

// pause returns the time until the next try after tries tries in age: 10 ms doubling to 1 s, and a
// thirtieth of age, at most maxAgedPause, after half a minute.
func pause(tries int, age time.Duration) time.Duration {
	if age > 30*maxPause {
		return min(age/30, maxAgedPause)
	}
	return min(minPause<<min(max(tries, 1)-1, 10), maxPause)
}

// All residues of a driver share a budget: per second 1,000 repetitions for residues without any
// answer, or 100 for those with one. Free are the first try of a residue, and the first removal of
// a hold known to be there: there are no more of them than acquires.
const (
	budgetMax    = 1000
	budgetPerSec = 1000
	costSilent   = 1
	costAnswered = 10
)

// cost returns the cost of the next try of a residue. found: a hold is known to be there, and the
// last try did not fail.
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

// budget is the rest of the budget at a time. The zero budget is full.
type budget struct {
	spent float64
	at    time.Time
}

// spend takes n if the budget has it.
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

// wait returns the time until the budget has n.
func (b *budget) wait(n int, now time.Time) time.Duration {
	b.refill(now)
	short := max(b.spent+float64(n)-budgetMax, 0)
	return time.Duration(short / budgetPerSec * float64(time.Second))
}

func (b *budget) refill(now time.Time) {
	b.spent = max(b.spent-now.Sub(b.at).Seconds()*budgetPerSec, 0)
	b.at = now
}

package outcome

import "time"

const (
	cleanMin = 10 * time.Millisecond
	cleanMax = time.Second
	// rare is the longest pause. Tries come every second at first, after half a minute ever more rarely.
	rare = 30 * time.Second
	// listen is how long the first try waits for answers that can still come: they mostly do.
	listen = 20 * time.Millisecond
	// lastListen is how long Close waits for them.
	lastListen = 100 * time.Millisecond
)

// pause is the time between a try of a clean-up and the next one, by how many there were and for how long it has gone on.
func pause(tries int, age time.Duration) time.Duration {
	if age > 30*cleanMax {
		return min(age/30, rare)
	}
	return min(cleanMin<<min(max(tries, 1)-1, 10), cleanMax)
}

// What tries cost, of a budget that all residues of a driver share. It bounds the repetitions: 1,000 a second while nothing
// answers, 100 after that. The first try of a residue, and one that removes what is known to be there, are free: there is at
// most one of them for each acquire that was sent.
const (
	budgetMax    = 1000
	budgetPerSec = 1000
	costSilent   = 1
	costAnswered = 10
)

// cost is what the next try of a residue costs.
func cost(tries int, answered, present bool) int {
	switch {
	case tries == 0 || present:
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

package retry

import (
	"maps"
	"time"
)

// placeLife is how long a place at the server counts after the last attempt of its waiter, unless
// many wait.
const placeLife = 5 * time.Second

// leavePlace records that the last waiter of name may have left a place at the server. It would
// keep the lock for this process, so the next attempt or release removes it. The amortized cost for
// each is constant. mu is held.
func (qs *queues) leavePlace(name string) {
	now := time.Now()
	if len(qs.places) >= qs.sweepPlacesAt {
		maps.DeleteFunc(qs.places, func(_ string, end time.Time) bool { return !now.Before(end) })
		qs.sweepPlacesAt = 2*len(qs.places) + 64
	}
	qs.places[name] = now.Add(placeLife)
}

// takePlace reports whether this process may have left a place for name, and forgets it. mu is
// held.
func (qs *queues) takePlace(name string) bool {
	end, left := qs.places[name]
	if left {
		delete(qs.places, name)
	}
	return left && time.Now().Before(end)
}

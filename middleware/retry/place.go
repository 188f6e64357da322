package retry

import (
	"maps"
	"time"
)

// placeLife is how long the server keeps a waiter's place after its last attempt, unless many wait.
const placeLife = 5 * time.Second

// recordPlace records that the last waiter of name may have left a place in the server's queue. The
// place would keep the lock for this process: the next attempt or release removes it. The amortized
// cost is constant. mu is held.
func (qs *queues) recordPlace(name string) {
	now := time.Now()
	if len(qs.leftPlaces) >= qs.sweepPlacesAt {
		maps.DeleteFunc(qs.leftPlaces, func(_ string, end time.Time) bool { return !now.Before(end) })
		qs.sweepPlacesAt = 2*len(qs.leftPlaces) + 64
	}
	qs.leftPlaces[name] = now.Add(placeLife)
}

// forgetPlace removes the record of name, and reports whether the place may still exist. mu is held.
func (qs *queues) forgetPlace(name string) bool {
	end, left := qs.leftPlaces[name]
	if left {
		delete(qs.leftPlaces, name)
	}
	return left && time.Now().Before(end)
}

package retry

import (
	"maps"
	"time"
)

// placeLife is how long a place at the server counts after the last attempt of its waiter, unless
// many wait.
const placeLife = 5 * time.Second

// recordPlace records that the last waiter of name may have left a place at the server. It would
// keep the lock for this process, so the next attempt or release removes it. The amortized cost for
// each is constant. mu is held.
func (qs *queues) recordPlace(name string) {
	now := time.Now()
	if len(qs.leftPlaces) >= qs.sweepPlacesAt {
		maps.DeleteFunc(qs.leftPlaces, func(_ string, end time.Time) bool { return !now.Before(end) })
		qs.sweepPlacesAt = 2*len(qs.leftPlaces) + 64
	}
	qs.leftPlaces[name] = now.Add(placeLife)
}

// forgetPlace reports whether this process may have left a place for name, and forgets it. mu is
// held.
func (qs *queues) forgetPlace(name string) bool {
	end, left := qs.leftPlaces[name]
	if left {
		delete(qs.leftPlaces, name)
	}
	return left && time.Now().Before(end)
}

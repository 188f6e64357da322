package adapter

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

// Gate bounds how many calls of a driver are in flight at one server. Calls wait at the gate
// instead of in the client's own queue, so that a caller that gives up there knows that nothing was
// sent. A call whose caller has left keeps its place until the client ends it.
//
// Some places are reserved for urgent calls ([driver.Urgent]). Urgent calls also enter before
// others that wait.
type Gate struct {
	places, reserved int

	mu             sync.Mutex
	inside         int
	urgent, others list.List // queues of chan struct{}; each is closed when its owner may enter
	expiries       Expiries  // of those who wait
}

// NewGate returns a Gate with n places, or two if n is smaller. One place in eight, but at least
// one, is reserved for urgent calls.
func NewGate(n int) *Gate {
	reserved := max(n/8, 1)
	return &Gate{places: max(n, 1+reserved), reserved: reserved}
}

// Enter waits for a place. If ctx ends first, the error is ctx's and matches [driver.ErrNotSent].
// Call Leave when the call is over.
func (g *Gate) Enter(ctx context.Context) error {
	urgent := driver.Urgent(ctx)
	g.mu.Lock()
	waiting := &g.others
	if urgent {
		waiting = &g.urgent
	}
	if waiting.Len() == 0 && mayEnter(g.inside, g.places, g.reserved, urgent) {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	admitted := make(chan struct{})
	place := waiting.PushBack(admitted)
	g.mu.Unlock()
	within := g.expiries.Share(ctx, time.Now())
	defer Unshare(within)
	select {
	case <-admitted:
		return nil
	case <-within.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-admitted: // at the same moment: free the place
		g.inside--
		g.admit()
	default:
		waiting.Remove(place)
	}
	return driver.NotSent(ctx.Err())
}

// TryEnter is Enter without waiting. It reports whether there was a place.
func (g *Gate) TryEnter(ctx context.Context) bool {
	urgent := driver.Urgent(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if (g.urgent.Len() > 0 || !urgent && g.others.Len() > 0) || !mayEnter(g.inside, g.places, g.reserved, urgent) {
		return false
	}
	g.inside++
	return true
}

// Leave frees the place of a call.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

// admit lets waiting calls enter while there are places. The mutex is held.
func (g *Gate) admit() {
	for _, waiting := range [...]*list.List{&g.urgent, &g.others} {
		for waiting.Len() > 0 && mayEnter(g.inside, g.places, g.reserved, waiting == &g.urgent) {
			g.inside++
			close(waiting.Remove(waiting.Front()).(chan struct{})) //nolint:errcheck // nothing else is in it
		}
	}
}

// mayEnter reports whether one more call may enter beside those inside.
func mayEnter(inside, places, reserved int, urgent bool) bool {
	if urgent {
		return inside < places
	}
	return inside < places-reserved
}

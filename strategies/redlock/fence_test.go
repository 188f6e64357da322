package redlock_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
	"github.com/holdfast-go/holdfast/providers/goredis"
	"github.com/holdfast-go/holdfast/strategies/redlock"
	"github.com/holdfast-go/holdfast/strategies/reentrant"
)

// raiser asks the lease of a lock to raise its fence, as a quorum around it does.
func raiser(lock *locker.Lock, fence int64) (err error) {
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		_, err = inner.Do(bg, lease.Op{Kind: lease.OpRaiseFence, Fence: fence})
		return inner
	})
	return err
}

// A raise to which so many nodes answer that the hold is gone says that it is lost.
func TestRaiseOfALostHold(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Owner: "me", Fenced: true})
		c.n[0].Forget(name)
		c.n[1].Forget(name)
		if err := raiser(lock, 100); !errors.Is(err, locker.ErrNotHeld) {
			t.Errorf("two of three nodes said that it is gone, and raise says: %v", err)
		}
	})
}

// A raise of what was released says so, as that of one node does.
func TestRaiseOfAReleasedHold(t *testing.T) {
	inHooked(t, 3, redlock.Config{}, func(t *testing.T, c *hookedCluster) {
		lock := c.take(t, locker.Request{Fenced: true})
		match(t, lock.Release(t.Context()))
		match(t, raiser(lock, 100), locker.ErrNotHeld)
		lock = c.take(t, locker.Request{Fenced: true})
		sleep(ttl) // it has ended, and nobody was told
		match(t, raiser(lock, 100), locker.ErrNotHeld)
	})
}

// A nested hold of one owner has the token of the hold around it, or a higher one.
func TestNestedFenceIsNoLower(t *testing.T) {
	t.Parallel()
	var lockers []locker.Locker
	gate := make([]*gated, 3)
	for i := range 3 {
		m := miniredis.NewMiniRedis()
		m.SetTime(time.Now().Add(time.Duration(i) * ms)) // clocks differ by 1 ms, as clocks do
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		})
		drv := locker.Must(goredis.New(client))
		t.Cleanup(func() { _ = drv.Close(); _ = client.Close(); m.Close() })
		gate[i] = &gated{Locker: locker.Must(reentrant.New(drv, reentrant.Config{}))}
		lockers = append(lockers, gate[i])
	}
	l := locker.Must(redlock.New(lockers, redlock.Config{}))
	late := gate[2].hold() // the node whose clock is ahead is the last to be asked
	outer, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
	match(t, err)
	late()
	late = gate[0].hold() // next time it is another
	inner, err := l.Acquire(t.Context(), locker.Request{Name: name, Owner: "me", Fenced: true})
	match(t, err)
	if inner.Fence() < outer.Fence() { // equal where both quorums are of the same nodes
		t.Errorf("one tenure of one owner has the tokens %d and, nested, %d", outer.Fence(), inner.Fence())
	}
	late()
	match(t, inner.Release(bg))
	match(t, outer.Release(bg))
}

// gated is a Locker that is not asked before the gate opens.
type gated struct {
	locker.Locker
	mu           sync.Mutex
	gate, passed chan struct{}
}

// hold closes the gate for the next acquire; open lets it through, and waits for it.
func (g *gated) hold() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate, passed := make(chan struct{}), make(chan struct{})
	g.gate, g.passed = gate, passed
	return func() { close(gate); <-passed }
}

func (g *gated) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	g.mu.Lock()
	gate, passed := g.gate, g.passed
	g.gate, g.passed = nil, nil
	g.mu.Unlock()
	if gate != nil {
		<-gate
		defer close(passed)
	}
	return g.Locker.Acquire(ctx, req)
}

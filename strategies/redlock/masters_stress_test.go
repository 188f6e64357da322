package redlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/middleware/retry"
	"github.com/holdfast-go/holdfast/strategies/redlock"
)

// stressSeed names the environment variable with the seed of an earlier run.
const stressSeed = "HOLDFAST_REDLOCK_SEED"

// What a run must have seen to prove anything.
const (
	enoughLocks        = 10
	enoughDisturbances = 20
)

// resource is what the lock guards: a counter that loses updates of two at once, in a store that
// refuses a fencing token below the highest that it has seen, even a reader's. A holder whose
// Deadline has passed may overlap with the next: that is no violation, and the store is to refuse
// it.
type resource struct {
	mu      sync.Mutex
	inside  *locker.Lock
	counter int
	fence   int64
	entered int
	writes  int
}

// enter says what is wrong with lock being inside.
func (r *resource) enter(t *testing.T, lock *locker.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.inside; other != nil && time.Now().Before(other.Deadline()) {
		t.Errorf("%v comes in beside %v, whose lease has %v left", lock, other, time.Until(other.Deadline()))
	}
	r.inside = lock
	r.entered++
}

// read reads by the fencing token, which is above all before it.
func (r *resource) read(t *testing.T, lock *locker.Lock) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch live := time.Now().Before(lock.Deadline()); {
	case lock.Fence() > r.fence:
		r.fence = lock.Fence()
	case live:
		t.Errorf("%v has fence %d, the last one that read had %d", lock, lock.Fence(), r.fence)
	}
	return r.counter
}

// write stores by the fencing token of one who has read.
func (r *resource) write(t *testing.T, lock *locker.Lock, value int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch live := time.Now().Before(lock.Deadline()); {
	case lock.Fence() == r.fence:
		r.counter = value
		r.writes++
	case live:
		t.Errorf("%v has fence %d, the last one that read had %d", lock, lock.Fence(), r.fence)
	}
}

func (r *resource) locks() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entered
}

func (r *resource) leave(lock *locker.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside == lock {
		r.inside = nil
	}
}

// disturb kills, restarts, freezes and thaws up to two nodes at once, until ctx ends; then all run
// again.
func (m *masters) disturb(ctx context.Context, random *rand.Rand, disturbances *atomic.Int64) {
	down := map[int]func(){} // how each comes back
	tick := time.NewTicker(40 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			for _, back := range down {
				back()
			}
			return
		}
		i := random.IntN(five)
		back, isDown := down[i]
		switch {
		case isDown:
			back()
			delete(down, i)
		case len(down) == 2:
			continue
		case random.IntN(2) == 0:
			check(m.T, m.servers[i].Kill())
			down[i] = func() { check(m.T, m.servers[i].Restart(context.WithoutCancel(ctx))) }
		default:
			check(m.T, m.servers[i].Freeze())
			down[i] = func() { check(m.T, m.servers[i].Thaw()) }
		}
		disturbances.Add(1)
	}
}

func check(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// Six contenders on the three clients, while up to two nodes of five are down at any time, and
// others each moment: one holds at a time, and tokens increase.
func TestStressedMasters(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	if s := os.Getenv(stressSeed); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", stressSeed, seed)
	m := startMasters(t)
	var lockers []locker.Locker
	for i := range 6 {
		lockers = append(lockers, locker.Chain(m.quorum(i, redlock.Config{}, nil), locker.Must(retry.New(retry.Config{}))))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // on a machine that has no time for it
	defer cancel()
	var r resource
	var all sync.WaitGroup
	var disturbances, lost, unknown, others atomic.Int64
	all.Go(func() { m.disturb(ctx, rand.New(rand.NewPCG(seed, 1)), &disturbances) })
	all.Go(func() { // it lasts until it proves something
		defer cancel()
		for tick := time.Tick(3 * time.Second); ctx.Err() == nil; {
			select {
			case <-tick:
			case <-ctx.Done():
			}
			if r.locks() >= enoughLocks && disturbances.Load() >= enoughDisturbances {
				return
			}
		}
	})
	req := locker.Request{Name: name, TTL: time.Second, Fenced: true}
	work := func(_ context.Context, lock *locker.Lock) error {
		r.enter(t, lock)
		defer r.leave(lock)
		value := r.read(t, lock)
		if value%8 == 0 { // now and then it takes a while
			<-time.After(3 * time.Millisecond)
		}
		r.write(t, lock, value+1)
		return nil
	}
	for _, l := range lockers {
		all.Go(func() {
			for ctx.Err() == nil {
				switch err := locker.Do(ctx, l, req, work); {
				case err == nil, ctx.Err() != nil:
				case errors.Is(err, locker.ErrLost):
					lost.Add(1)
				case errors.Is(err, locker.ErrUnknownOutcome):
					unknown.Add(1)
				case isQuorumError(err):
					others.Add(1)
				default:
					t.Errorf("Do: %v", err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d locks, %d writes, %d disturbances; %d lost, %d of unknown outcome, %d other outages",
		r.entered, r.counter, disturbances.Load(), lost.Load(), unknown.Load(), others.Load())
	if r.counter != r.writes {
		t.Errorf("the counter is %d after %d writes: updates were lost", r.counter, r.writes)
	}
	if r.entered < enoughLocks || disturbances.Load() < enoughDisturbances {
		t.Errorf("%d locks and %d disturbances: too few to prove anything", r.entered, disturbances.Load())
	}
	// None is stuck. The longer lease gives the nodes longer to answer.
	req.TTL = long
	for _, l := range slices.Backward(lockers) {
		m.release(m.acquireSoon(l, req))
	}
	m.nothingStays()
}

func isQuorumError(err error) bool {
	_, ok := errors.AsType[*redlock.QuorumError](err)
	return ok
}

package resolve

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// maxCalls bounds the calls of a lane in flight, less the stalled ones. Calls to one server
	// travel together: see adapter.Pipeline.
	maxCalls = 128
	// A call in flight for longer than stall is stalled. A lane may have maxStalled of them, so
	// that a newly frozen node delays no other.
	stall      = 50 * time.Millisecond
	maxStalled = 1024
	// maxResidues bounds the residues of a driver: see evict.
	maxResidues = 1 << 14
)

// lane is a share of the concurrent calls, for one class of residues: no class waits for the calls
// of another. The mutex of the cleaner guards it.
type lane struct {
	queues     []*residueQueue // served in this order
	calls      int             // in flight
	stalled    int             // of the calls
	maxStalled int
}

// full reports whether the lane may not have another call.
func (l *lane) full() bool { return l.calls-min(l.stalled, l.maxStalled) >= maxCalls }

// cleaner cleans up for one driver.
type cleaner struct {
	drv  driver.Driver
	wake chan struct{} // the next due time has changed

	mu      sync.Mutex
	count   int // residues, also those being tried
	closing bool
	budget  budget

	known       residueQueue // of holds known to be there
	firstTries  residueQueue
	repeats     residueQueue // of tries within the budget
	silent      residueQueue // of residues whose last try got no answer
	failedKnown residueQueue // of holds known to be there, after a failed try

	// In this order: known holds go before possible ones, and a silent server delays no other.
	lanes [3]lane
}

func newCleaner(drv driver.Driver) *cleaner {
	c := &cleaner{drv: drv, wake: make(chan struct{}, 1)}
	c.lanes = [...]lane{
		{queues: []*residueQueue{&c.known}, maxStalled: maxStalled},
		{queues: []*residueQueue{&c.firstTries, &c.repeats}, maxStalled: maxStalled},
		{queues: []*residueQueue{&c.failedKnown, &c.silent}},
	}
	return c
}

// start runs the cleaner as background work of its driver. If the driver is closing, start runs it
// to its end instead: a call may still succeed.
func (c *cleaner) start() {
	if !c.drv.Background(c.run) {
		closing, cancel := context.WithCancel(context.Background())
		cancel()
		c.run(closing)
	}
}

// run tries the due residues until none is left.
func (c *cleaner) run(closing context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	over := closing.Done()
	for {
		if over != nil && closing.Err() != nil {
			over = nil
			c.beginFinalTries()
		}
		r, in, wait := c.next(time.Now())
		switch {
		case r != nil:
			go c.try(r, in) //nolint:gosec // Close waits for the try
			continue
		case wait < 0:
			if cleaners.dismiss(c) {
				return
			}
		}
		if wait >= 0 {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-c.wake:
		case <-over:
		}
	}
}

// next returns the residue to try next, and its lane. If none is due it returns how long to wait; a
// negative wait means until the wake-up.
func (c *cleaner) next(now time.Time) (r *residue, in *lane, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait = -1
	for i := range c.lanes {
		in = &c.lanes[i]
		if in.full() {
			continue
		}
		for _, q := range in.queues {
			r, left := c.due(q, now)
			if r != nil {
				in.calls++
				return r, in, 0
			}
			if left >= 0 && (wait < 0 || left < wait) {
				wait = left
			}
		}
	}
	return nil, nil, wait
}

// due takes from q a residue if it is due and within the budget. Otherwise it returns the wait for
// one, or -1 if q is empty. The mutex is held.
func (c *cleaner) due(q *residueQueue, now time.Time) (r *residue, wait time.Duration) {
	for q.Len() > 0 {
		r := (*q)[0]
		if r.Sends.Settled() {
			c.drop(r)
			continue
		}
		price := r.cost()
		if left := r.due.Sub(now); left > 0 {
			return nil, left
		}
		if c.budget.spend(price, now) {
			q.remove(r)
			return r, 0
		}
		if !now.After(r.Until) {
			return nil, max(c.budget.wait(price, now), time.Millisecond)
		}
		c.drop(r) // there is no budget for its last try
	}
	return nil, -1
}

// drop removes a waiting residue. The mutex is held.
func (c *cleaner) drop(r *residue) {
	r.queue.remove(r)
	c.count--
}

// try makes one call for r.
func (c *cleaner) try(r *residue, in *lane) {
	late := time.AfterFunc(stall, func() { c.addStalled(in, 1) })
	before := r.Sends.Mark()
	// It ends a hold, or is the last chance to.
	ctx := &bounded.Context{IsUrgent: before.ledger.present > 0 || r.finalTries > 0}
	ctx.Start(context.Background(), time.Now().Add(r.Timeout))
	removed, err := r.Remove(ctx)
	ctx.Stop()
	if !late.Stop() {
		c.addStalled(in, -1)
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	in.calls--
	r.record(removed, err, before)
	if r.isOver(err, now) {
		c.count--
	} else {
		r.schedule(err, now, c.closing)
		c.put(r)
	}
	c.wakeRun()
}

// addStalled adds n to the number of stalled calls of a lane.
func (c *cleaner) addStalled(in *lane, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in.stalled += n
	c.wakeRun()
}

// add takes a residue in. The mutex is held.
func (c *cleaner) add(r *residue) {
	if c.count >= maxResidues {
		c.evict()
	}
	c.count++
	if c.closing {
		r.finalTries, r.due = 1, r.began
	}
	c.put(r)
	c.wakeRun()
}

// evict drops a residue that was tried before, if there is one. A hold known to be there is the
// last choice, and only after a failed try. The mutex is held.
func (c *cleaner) evict() {
	for _, q := range [...]*residueQueue{&c.repeats, &c.silent, &c.failedKnown} {
		if q.Len() > 0 {
			c.drop((*q)[q.Len()-1]) // a leaf of the heap
			return
		}
	}
}

// put lets r wait in its queue. The mutex is held.
func (c *cleaner) put(r *residue) {
	known := r.Sends.state().present > 0
	switch {
	case r.failed && known:
		c.failedKnown.put(r)
	case r.silent:
		c.silent.put(r)
	case known:
		c.known.put(r)
	case r.cost() == 0:
		c.firstTries.put(r)
	default:
		c.repeats.put(r)
	}
}

// wakeRun wakes run.
func (c *cleaner) wakeRun() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// answered is called after a late answer to a send of r. It drops r if nothing can be left, and
// makes it due at once if there is a hold to remove.
func (c *cleaner) answered(r *residue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.queue == nil {
		return // it is over, or being tried: try looks itself
	}
	switch state := r.Sends.state(); {
	case state.settled(), r.finalTries > 1 && state.pending == 0 && state.present == 0:
		c.drop(r)
	case state.present > 0:
		r.queue.remove(r)
		r.due, r.failed, r.silent = time.Now(), false, false // its server answers
		c.put(r)
	default:
		return
	}
	c.wakeRun()
}

// beginFinalTries makes every residue due for its last try, because the driver is closing.
func (c *cleaner) beginFinalTries() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for _, q := range [...]*residueQueue{&c.known, &c.firstTries, &c.repeats, &c.silent, &c.failedKnown} {
		for _, r := range *q {
			r.finalTries, r.due = 1, r.began // their order stays
		}
		heap.Init(q)
	}
}

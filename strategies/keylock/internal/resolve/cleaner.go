package resolve

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// maxBatch bounds the residues of one call.
	maxBatch = 64
	// maxCalls bounds the concurrent calls of a lane.
	maxCalls = 4
	// maxSilent bounds those of the lane for residues whose last try got no answer.
	maxSilent = 2
	// stall is how long a call counts among maxCalls. Up to maxStalled of a lane may be in flight
	// for longer, so that a node that has just frozen delays no other.
	stall      = 50 * time.Millisecond
	maxStalled = 32
	// maxResidues bounds the residues of a driver: a further one replaces one that was tried
	// before, if there is one. See evict.
	maxResidues = 1 << 14
)

// callLane is a share of the concurrent calls. Each class of residues has its own, so that none
// waits for the calls of another. The mutex of the cleaner guards it.
type callLane struct {
	queues     []*residueQueue // those that it serves, in this order
	calls      int             // under way, without those that are stalled
	maxCalls   int
	stalled    int
	maxStalled int
}

// cleaner cleans up for one driver.
type cleaner struct {
	drv  driver.Driver
	wake chan struct{} // what is due has changed

	mu      sync.Mutex
	count   int // residues, also those that are being tried
	closing bool
	budget  budget

	known       residueQueue // of holds known to be there
	first       residueQueue // of first tries
	again       residueQueue // of tries within the budget
	silent      residueQueue // of residues whose last try was not answered
	failedKnown residueQueue // of holds known to be there, whose last try failed

	// In this order: what is known to be there waits for nothing that may be there, and a silent
	// server delays no other.
	lanes [3]callLane
}

func newCleaner(drv driver.Driver) *cleaner {
	c := &cleaner{drv: drv, wake: make(chan struct{}, 1)}
	c.lanes = [...]callLane{
		{queues: []*residueQueue{&c.known}, maxCalls: maxCalls, maxStalled: maxStalled},
		{queues: []*residueQueue{&c.first, &c.again}, maxCalls: maxCalls, maxStalled: maxStalled},
		{queues: []*residueQueue{&c.failedKnown, &c.silent}, maxCalls: maxSilent},
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

// run tries what is due until nothing is left.
func (c *cleaner) run(closing context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	over := closing.Done()
	for {
		if over != nil && closing.Err() != nil {
			over = nil
			c.beginFinalTries()
		}
		batch, in, wait := c.next(time.Now())
		switch {
		case len(batch) > 0:
			go c.try(batch, in) //nolint:gosec // a try outlives the beginning of Close, which waits for it
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

// next returns the residues of the next call, and its lane. If none is due it returns how long to
// wait; a negative wait means until the wake-up.
func (c *cleaner) next(now time.Time) (batch []*residue, in *callLane, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 1
	if _, ok := c.drv.(driver.Batcher); ok {
		most = maxBatch
	}
	wait = -1
	for i := range c.lanes {
		in = &c.lanes[i]
		if in.calls >= in.maxCalls {
			continue
		}
		for _, q := range in.queues {
			batch = c.due(batch, q, now, most, &wait)
		}
		if len(batch) > 0 {
			in.calls++
			return batch, in, 0
		}
	}
	return nil, nil, wait
}

// due moves the residues of q that are due and within the budget to batch. It lowers wait to the
// time until the next one. The mutex is held.
func (c *cleaner) due(
	batch []*residue, q *residueQueue, now time.Time, most int, wait *time.Duration,
) []*residue {
	for q.Len() > 0 && len(batch) < most {
		r := (*q)[0]
		if r.Sends.Settled() {
			q.remove(r)
			c.count--
			continue
		}
		left, price := r.due.Sub(now), r.cost()
		if left <= 0 && !c.budget.spend(price, now) {
			if now.After(r.Until) { // there is no budget for its last try
				q.remove(r)
				c.count--
				continue
			}
			left = max(c.budget.wait(price, now), time.Millisecond)
		}
		if left > 0 {
			if *wait < 0 || left < *wait {
				*wait = left
			}
			break
		}
		q.remove(r)
		batch = append(batch, r)
	}
	return batch
}

// try makes one call for all of the batch.
func (c *cleaner) try(batch []*residue, in *callLane) {
	before := make([]Mark, len(batch))
	timeout := time.Duration(0)
	ctx := new(driver.Bounded)
	for i, r := range batch {
		before[i] = r.Sends.Mark()
		timeout = max(timeout, r.Timeout)
		// It ends a hold, or is the last chance to.
		ctx.Urgent = ctx.Urgent || before[i].ledger.present > 0 || r.finalTries > 0
	}
	slot := &in.calls
	defer time.AfterFunc(stall, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if slot == &in.calls && in.stalled < in.maxStalled {
			in.calls, in.stalled, slot = in.calls-1, in.stalled+1, &in.stalled
			c.wakeRun()
		}
	}).Stop()
	ctx.Start(context.Background(), time.Now().Add(timeout))
	results := c.eval(ctx, batch)
	ctx.Stop()
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	*slot--
	slot = nil
	for i, r := range batch {
		err := r.record(results[i], before[i])
		if r.isOver(err, now) {
			c.count--
			continue
		}
		r.schedule(err, now, c.closing)
		c.put(r)
	}
	c.wakeRun()
}

func (c *cleaner) eval(ctx context.Context, batch []*residue) []driver.Result {
	if len(batch) == 1 {
		call := batch[0].Call()
		reply, err := c.drv.Eval(ctx, call.Script, call.Keys, call.Args)
		return []driver.Result{{Reply: reply, Err: err}}
	}
	calls := make([]driver.Call, len(batch))
	for i, r := range batch {
		calls[i] = r.Call()
	}
	return EvalMany(ctx, c.drv, calls)
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

// evict drops a residue that was tried before and that an answered try did not remove, if there is
// one. A hold known to be there is dropped last. The mutex is held.
func (c *cleaner) evict() {
	for _, q := range [...]*residueQueue{&c.again, &c.silent, &c.failedKnown} {
		if q.Len() > 0 {
			q.remove((*q)[q.Len()-1]) // a leaf of the heap
			c.count--
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
		c.first.put(r)
	default:
		c.again.put(r)
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
		return // it is being tried, which looks itself, or is over
	}
	switch state := r.Sends.state(); {
	case state.settled(), r.finalTries > 1 && state.pending == 0 && state.present == 0:
		r.queue.remove(r)
		c.count--
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
	for _, q := range [...]*residueQueue{&c.known, &c.first, &c.again, &c.silent, &c.failedKnown} {
		for _, r := range *q {
			r.finalTries, r.due = 1, r.began // their order stays
		}
		heap.Init(q)
	}
}

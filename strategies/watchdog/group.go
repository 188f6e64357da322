package watchdog

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

const (
	// maxBatch is how many renewals travel together at most: a server is not to be kept busy for long at once.
	maxBatch = 256
	// maxWorkers is how many goroutines a group has at most.
	maxWorkers = 16
	// stall is after which time a batch without an answer holds up its group no longer: a node of a cluster may be silent.
	stall = 50 * time.Millisecond
	// retryMin is for how long the first repetition of a renewal waits for its answer. Those that follow wait twice as long
	// each, so that what gets no answer leaves room for what would get one.
	retryMin = 200 * time.Millisecond
)

// groupKey says whose renewals wait for one another: those of one batch, or of one Locker where there are no batches.
type groupKey struct {
	of       any
	together bool
	again    bool // repetitions: what failed must not hold up what did not
}

// groupOf is the group of the next renewal of l. One that failed among others is repeated alone: the others may be why. One
// that failed alone is repeated among others: after an outage there are many.
func groupOf(l *lease) groupKey {
	again := l.fails > 0
	batch := locker.BatchOf(l.lock)
	if batch == nil {
		return groupKey{l.watcher, false, again}
	}
	return groupKey{batch, l.fails%2 == 0, again}
}

// group is what is due and not begun. It exists while there is something to do. The scheduler's mutex guards it.
type group struct {
	key     groupKey
	due     []*lease
	workers int
	stalled int // of the workers
}

// hand gives l to its group. The mutex is held.
func (s *scheduler) hand(l *lease, key groupKey) {
	g := s.groups[key]
	if g == nil {
		g = &group{key: key}
		s.groups[key] = g
	}
	g.due = append(g.due, l)
	s.help(g)
}

// help gives the group a worker if there is something to do and it may have one more: for batches, only while all that it
// has are stalled. The mutex is held.
func (s *scheduler) help(g *group) {
	if len(g.due) == 0 || g.workers == maxWorkers || g.key.together && g.workers > g.stalled {
		return
	}
	g.workers++
	go s.work(g)
}

func (s *scheduler) work(g *group) {
	size := 1
	if g.key.together {
		size = maxBatch
	}
	for taken := s.take(g, size); len(taken) > 0; taken = s.take(g, size) {
		taken = slices.DeleteFunc(taken, ended)
		switch {
		case len(taken) == 0:
		case g.key.together:
			s.renewTogether(g, taken)
		default:
			s.settle(taken[0], s.renew(taken[0]))
		}
	}
}

// take returns up to n leases that are due, or none when the worker is to end. Those released meanwhile are left out.
func (s *scheduler) take(g *group, n int) []*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []*lease
	for len(g.due) > 0 && len(taken) < n {
		if l := g.due[0]; !l.released {
			taken = append(taken, l)
		}
		g.due[0] = nil
		g.due = g.due[1:]
	}
	if len(taken) == 0 {
		if g.workers--; g.workers == 0 {
			delete(s.groups, g.key)
		}
	}
	return taken
}

func (s *scheduler) renewTogether(g *group, taken []*lease) {
	late := time.AfterFunc(stall, func() { s.late(g, 1) })
	defer func() {
		if !late.Stop() {
			s.late(g, -1)
		}
	}()
	locks := make([]*locker.Lock, len(taken))
	wait := patience(taken[0])
	for i, l := range taken {
		locks[i] = l.lock
		wait = min(wait, patience(l))
	}
	ctx := context.Background()
	if g.key.again { // the first time the strategy's own bound will do
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	for i, err := range locker.RenewBatch(ctx, locks) {
		s.settle(taken[i], err)
	}
}

// late counts a worker whose batch is late, or not any more.
func (s *scheduler) late(g *group, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.stalled += by
	s.help(g)
}

func ended(l *lease) bool { return l.lock.Err() != nil }

// renew makes one renewal.
func (s *scheduler) renew(l *lease) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience(l))
	defer cancel()
	return l.lock.Renew(ctx, 0)
}

// patience is how long a renewal waits for its answer: a third of the TTL; a repetition, less.
func patience(l *lease) time.Duration {
	wait := l.lock.TTL() / 3
	if l.fails > 0 {
		wait = min(wait, retryMin<<(l.fails-1))
	}
	return wait
}

package watchdog

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

const (
	// maxBatch is the maximum number of renewals in a batch, so that none keeps a server busy for
	// long.
	maxBatch = 256
	// maxBatches is the maximum number of batches of a group in flight.
	maxBatches = 16
	// maxActive bounds the renewals of a group that are sent one by one and are in flight but not
	// stalled. It grows by half the number of stalled ones, so that a silent server with many locks
	// does not use up the time of the others.
	maxActive = 16
	// maxAlone bounds the renewals of a group that are sent one by one, stalled ones included.
	maxAlone = 128
	// stall is how long a renewal or a batch may be in flight before it counts as stalled. A
	// stalled one no longer holds up its group: its server may be silent while others answer.
	stall = 50 * time.Millisecond
	// retryMin is how long a renewal waits for its answer while its group is crowded, doubled with
	// each failure, so that unanswered renewals leave room for others.
	retryMin = 200 * time.Millisecond
)

// groupKey identifies the renewals that share a limit: those of one Batch, or of one Locker whose
// renewals are sent one by one.
type groupKey struct {
	of       any
	together bool
	fails    uint8 // 0, 1, or 2 for two and more, so that failed renewals do not delay the others
}

// groupOf returns the group of the next renewal of l. One that failed in a batch is repeated alone:
// the others may be the cause. One that failed alone is repeated in a batch: after an outage there
// are many.
func groupOf(l *watchedLease) groupKey {
	fails := min(l.fails, 2)
	batch := l.lock.Batch()
	if batch == nil {
		return groupKey{l.watcher, false, fails}
	}
	return groupKey{batch, l.fails%2 == 0, fails}
}

// group holds the renewals that are due and not begun. It exists while it has any, or workers. The
// scheduler's mutex guards it.
type group struct {
	key     groupKey
	due     []*watchedLease
	workers int
	stalled int // of the workers
}

// crowded reports whether so many renewals are stalled that further ones must not wait for long.
func (g *group) crowded() bool { return g.stalled >= maxActive }

// full reports whether the group may not have another worker.
func (g *group) full() bool {
	active := g.workers - g.stalled
	if g.key.together {
		return active > 0 || g.workers >= maxBatches
	}
	return active >= maxActive+g.stalled/2 || g.workers >= maxAlone
}

// enqueue adds l to its group. The mutex is held.
func (s *scheduler) enqueue(l *watchedLease, key groupKey) {
	g := s.groups[key]
	if g == nil {
		g = &group{key: key}
		s.groups[key] = g
	}
	g.due = append(g.due, l)
	s.startWorker(g)
}

// startWorker starts a worker of the group if renewals are due and it may have another one. The
// mutex is held.
func (s *scheduler) startWorker(g *group) {
	if len(g.due) == 0 || g.full() {
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
	for taken, crowded := s.take(g, size); len(taken) > 0; taken, crowded = s.take(g, size) {
		if taken = slices.DeleteFunc(taken, unneeded); len(taken) == 0 {
			continue
		}
		errs := s.send(g, taken, crowded)
		for i, l := range taken {
			s.planAfter(l, errs[i])
		}
	}
}

// take returns up to n leases that are due, without those released meanwhile, and whether the group
// is crowded. If it returns none, the worker ends.
func (s *scheduler) take(g *group, n int) (taken []*watchedLease, crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.startWorker(g)
	return taken, g.crowded()
}

// send renews the leases that were taken, and counts the worker as stalled while the answer is
// late.
func (s *scheduler) send(g *group, taken []*watchedLease, crowded bool) []error {
	late := time.AfterFunc(stall, func() { s.addStalled(g, 1) })
	defer func() {
		if !late.Stop() {
			s.addStalled(g, -1)
		}
	}()
	if !g.key.together {
		return []error{renewAlone(taken[0], crowded)}
	}
	return renewTogether(g, taken)
}

func renewTogether(g *group, taken []*watchedLease) []error {
	holds := make([]lease.Hold, len(taken))
	wait := patience(taken[0])
	for i, l := range taken {
		holds[i] = l.lock
		wait = min(wait, patience(l))
	}
	ctx := context.Background()
	if g.key.fails > 0 { // the first try has the strategy's own bound
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	return lease.RenewBatch(ctx, holds)
}

func renewAlone(l *watchedLease, crowded bool) error {
	wait := patience(l)
	if crowded {
		wait = min(wait, retryMin<<l.fails)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return l.lock.Renew(ctx)
}

// addStalled adds n to the number of stalled workers.
func (s *scheduler) addStalled(g *group, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.stalled += n
	s.startWorker(g)
}

func ended(l *watchedLease) bool { return l.lock.Err() != nil }

// unneeded reports whether the lock is not to be renewed, because it has ended or was forgotten.
// The lease of a forgotten lock runs out.
func unneeded(l *watchedLease) bool {
	if ended(l) {
		return true
	}
	forgotten := l.lock.Forgotten()
	if forgotten {
		l.lock.ExplainExpiry(locker.ErrForgotten)
	}
	return forgotten
}

// patience returns how long a renewal waits for its answer: a third of the TTL, or less if the one
// before it failed.
func patience(l *watchedLease) time.Duration {
	wait := l.lock.TTL() / 3
	if l.fails > 0 {
		wait = min(wait, retryMin<<(l.fails-1))
	}
	return wait
}

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
	// maxAlone is how many renewals that travel alone are under way at once, per group.
	maxAlone = 16
	// retryMin is for how long the first repetition of a renewal waits for its answer. Those that follow wait twice as long
	// each, so that what gets no answer leaves room for what would get one.
	retryMin = 200 * time.Millisecond
)

// groupKey says whose renewals wait for one another: those of one batch, or of one Locker where there are no batches.
type groupKey struct {
	of    any
	alone bool
}

// groupOf is the group of the next renewal of l. One that failed among others travels alone: the others may be why.
func groupOf(l *lease) groupKey {
	if batch := locker.BatchOf(l.lock); batch != nil {
		return groupKey{batch, l.fails > 0}
	}
	return groupKey{l.watcher, true}
}

// group is what is due and not begun. It exists while there is something to do.
type group struct {
	due     []*lease
	workers int
}

// hand gives l to its group, and the group a worker if it may have one more. The mutex is held.
func (s *scheduler) hand(l *lease, key groupKey) {
	g := s.groups[key]
	if g == nil {
		g = &group{}
		s.groups[key] = g
	}
	g.due = append(g.due, l)
	switch {
	case g.workers == 0:
	case key.alone && g.workers < maxAlone:
	default:
		return
	}
	g.workers++
	if key.alone {
		go s.renewAlone(key, g)
	} else {
		go s.renewTogether(key, g)
	}
}

// take returns up to n leases that are due, or none when the worker is to end. Those released meanwhile are left out.
func (s *scheduler) take(key groupKey, g *group, n int) []*lease {
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
			delete(s.groups, key)
		}
	}
	return taken
}

func (s *scheduler) renewTogether(key groupKey, g *group) {
	for taken := s.take(key, g, maxBatch); len(taken) > 0; taken = s.take(key, g, maxBatch) {
		taken = slices.DeleteFunc(taken, ended)
		locks := make([]*locker.Lock, len(taken))
		for i, l := range taken {
			locks[i] = l.lock
		}
		for i, err := range locker.RenewBatch(context.Background(), locks) {
			s.settle(taken[i], err)
		}
	}
}

func (s *scheduler) renewAlone(key groupKey, g *group) {
	for taken := s.take(key, g, 1); len(taken) > 0; taken = s.take(key, g, 1) {
		if l := taken[0]; !ended(l) {
			s.settle(l, s.renew(l))
		}
	}
}

func ended(l *lease) bool { return l.lock.Err() != nil }

// renew makes one renewal. It waits for a third of the TTL; a repetition, less.
func (s *scheduler) renew(l *lease) error {
	wait := l.lock.TTL() / 3
	if l.fails > 0 {
		wait = min(wait, retryMin<<(l.fails-1))
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	return l.lock.Renew(ctx, 0)
}

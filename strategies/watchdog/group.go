package watchdog

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

const (
	// maxWorkers bounds the renewals of a group in flight. Those to one server travel together: see
	// adapter.Pipeline. Over a link of 150 ms they are 6,800 renewals a second.
	maxWorkers = 1024
	// firstWait is the maximum wait for the answer to a first try. Unanswered ones then leave their
	// group to others.
	firstWait = time.Second
	// retryMin is the wait for the answer to the first repetition, doubled with each failure:
	// unanswered ones leave room for others.
	retryMin = 200 * time.Millisecond
)

// groupKey identifies the renewals that share a limit.
type groupKey struct {
	server any   // the Lease's, or the watcher if the Lease does not tell
	fails  uint8 // 0, 1, or 2 for two and more: failed renewals do not delay others
}

// group holds due renewals that have not begun. It exists while it has any, or workers. The
// scheduler's mutex guards it.
type group struct {
	key     groupKey
	due     []*watchedLease
	workers int
}

// served is a Lease whose hold is at one server: see lease.Lease.
type served interface{ Server() any }

// keyOf returns the key of l's group. It calls the driver.
func keyOf(l *watchedLease) groupKey {
	key := groupKey{l.watcher, min(l.fails, 2)}
	if s, ok := lease.Find[served](l.Lease); ok {
		key.server = s.Server()
	}
	return key
}

// enqueue adds l to a group. The mutex is held.
func (s *scheduler) enqueue(l *watchedLease, key groupKey) {
	g := s.groups[key]
	if g == nil {
		g = &group{key: key}
		s.groups[key] = g
	}
	g.due = append(g.due, l)
}

// startWorkers starts a worker for each due renewal of g, up to maxWorkers. The mutex is held.
func (s *scheduler) startWorkers(g *group) {
	for n := len(g.due); n > 0 && g.workers < maxWorkers; n-- {
		g.workers++
		go s.work(g)
	}
}

// work sends renewals of g, one after another, until none is due.
func (s *scheduler) work(g *group) {
	for l := s.take(g); l != nil; l = s.take(g) {
		if !unneeded(l) {
			s.planAfter(l, renew(l))
		}
	}
}

// take returns a due lease that was not released meanwhile. If there is none, it returns nil and
// the worker ends.
func (s *scheduler) take(g *group) *watchedLease {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(g.due) > 0 {
		l := g.due[0]
		g.due[0] = nil
		g.due = g.due[1:]
		if !l.released {
			return l
		}
	}
	if g.workers--; g.workers == 0 {
		delete(s.groups, g.key)
	}
	return nil
}

// renew sends one renewal. It waits for its answer for a third of the TTL at most.
func renew(l *watchedLease) error {
	wait := firstWait
	if l.fails > 0 {
		wait = retryMin << (l.fails - 1)
	}
	ctx := bounded.New(context.Background(), min(wait, l.lock.TTL()/3))
	defer ctx.Stop()
	return l.lock.Renew(ctx)
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

package watchdog

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/driver"
)

const (
	// maxActive bounds the renewals of a group that are in flight but not stalled. Those of one
	// server travel together: see adapter.Pipeline. It grows by half the number of stalled ones, so
	// that a silent server with many locks does not use up the time of the others.
	maxActive = 128
	// maxWorkers bounds the renewals of a group in flight, stalled ones included. Many more would make
	// a process worse that is short of processor time: its renewals stall too.
	maxWorkers = 192
	// stall is how long a renewal may be in flight before it counts as stalled. A stalled one no
	// longer holds up its group: its server may be silent while others answer.
	stall = 50 * time.Millisecond
	// manyStalled is how many stalled renewals make a group crowded.
	manyStalled = 16
	// retryMin is how long a renewal waits for its answer while its group is crowded, doubled with
	// each failure, so that unanswered renewals leave room for others.
	retryMin = 200 * time.Millisecond
)

// groupKey identifies the renewals that share a limit: those of one Locker.
type groupKey struct {
	watcher *watcher
	fails   uint8 // 0, 1, or 2 for two and more, so that failed renewals do not delay the others
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
func (g *group) crowded() bool { return g.stalled >= manyStalled }

// full reports whether the group may not have another worker.
func (g *group) full() bool {
	return g.workers-g.stalled >= maxActive+g.stalled/2 || g.workers >= maxWorkers
}

// enqueue adds l to its group. The mutex is held.
func (s *scheduler) enqueue(l *watchedLease) {
	key := groupKey{l.watcher, min(l.fails, 2)}
	g := s.groups[key]
	if g == nil {
		g = &group{key: key}
		s.groups[key] = g
	}
	g.due = append(g.due, l)
}

// startWorkers starts a worker for each renewal of g that is due, as far as it may have more. The
// mutex is held.
func (s *scheduler) startWorkers(g *group) {
	for n := len(g.due); n > 0 && !g.full(); n-- {
		g.workers++
		go s.work(g)
	}
}

// work sends renewals of g, one after another, until none is due.
func (s *scheduler) work(g *group) {
	var late *time.Timer // counts the worker as stalled
	for l, crowded := s.take(g); l != nil; l, crowded = s.take(g) {
		if unneeded(l) {
			continue
		}
		if late == nil {
			late = time.AfterFunc(stall, func() { s.addStalled(g, 1) })
		} else {
			late.Reset(stall)
		}
		err := renew(l, crowded)
		if !late.Stop() {
			s.addStalled(g, -1)
		}
		s.planAfter(l, err)
	}
}

// take returns a lease that is due and was not released meanwhile, and whether the group is
// crowded. If it returns nil, the worker ends.
func (s *scheduler) take(g *group) (l *watchedLease, crowded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(g.due) > 0 {
		l = g.due[0]
		g.due[0] = nil
		g.due = g.due[1:]
		if !l.released {
			return l, g.crowded()
		}
	}
	if g.workers--; g.workers == 0 {
		delete(s.groups, g.key)
	}
	return nil, false
}

// addStalled adds n to the number of stalled workers.
func (s *scheduler) addStalled(g *group, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.stalled += n
	s.startWorkers(g)
}

// renew sends one renewal, and waits for its answer for a third of the TTL, or less if the one
// before it failed or its group is crowded.
func renew(l *watchedLease, crowded bool) error {
	wait := l.lock.TTL() / 3
	if l.fails > 0 {
		wait = min(wait, retryMin<<(l.fails-1))
	}
	if crowded {
		wait = min(wait, retryMin<<l.fails)
	}
	ctx := driver.Bound(context.Background(), wait)
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

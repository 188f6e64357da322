package redlock

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// leftovers are the failed attempts and released locks of a Locker, by name, with an acquire or a
// release in flight at a node.
type leftovers struct {
	mu     sync.Mutex
	byName map[string][]*quorumState
}

func (l *leftovers) add(s *quorumState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string][]*quorumState{}
	}
	l.byName[s.req.Name] = append(l.byName[s.req.Name], s)
}

func (l *leftovers) remove(s *quorumState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := slices.DeleteFunc(l.byName[s.req.Name], func(other *quorumState) bool { return other == s })
	if len(rest) == 0 {
		delete(l.byName, s.req.Name)
		return
	}
	l.byName[s.req.Name] = rest
}

// leftover is an earlier hold's calls in flight at one node.
type leftover struct {
	owner    string
	released bool            // the hold was released; otherwise it is a failed attempt
	ends     <-chan struct{} // closed when they have ended
}

// leftoversAt returns the leftovers of the name at node i.
func (s *quorumState) leftoversAt(i int) (all []leftover) {
	var buf [4]*quorumState // saves an allocation
	s.leftovers.mu.Lock()
	earlier := append(buf[:0], s.leftovers.byName[s.req.Name]...)
	s.leftovers.mu.Unlock()
	for _, e := range earlier {
		if e == s {
			continue // it was released already
		}
		e.mu.Lock()
		if ends := e.slots[i].callEnds(); ends != nil {
			all = append(all, leftover{e.owner(), e.phase == released, ends})
		}
		e.unlock()
	}
	return all
}

// fromReleased reports whether all leftovers are of released holds.
func fromReleased(all []leftover) bool {
	return !slices.ContainsFunc(all, func(l leftover) bool { return !l.released })
}

// mayHaveRefused reports whether err is a refusal that names the owner of a leftover as the holder.
func mayHaveRefused(all []leftover, err error) bool {
	held, refused := errors.AsType[*locker.ContentionError](err)
	return refused && held.Owner != "" &&
		slices.ContainsFunc(all, func(l leftover) bool { return l.owner == held.Owner })
}

// becomeLeftover adds a failed attempt or a released lock to the leftovers while it has calls in
// flight. The mutex is held.
func (s *quorumState) becomeLeftover() {
	if s.ended != nil {
		close(s.ended)
		s.ended = nil
	}
	if s.hasCalls() {
		s.leftovers.add(s)
	}
}

// callEnded records the end of a call to a node. The mutex is held.
func (s *quorumState) callEnded(at *slot) {
	if at.idle != nil && !at.hasCall() {
		close(at.idle)
		at.idle = nil
	}
	if (s.phase == undone || s.phase == released) && !s.hasCalls() {
		s.leftovers.remove(s)
	}
}

// releaseEnded records the end of a node lock's release, with err.
func (s *quorumState) releaseEnded(at *slot, err error) {
	s.mu.Lock()
	defer s.unlock()
	at.ending, at.err = false, err
	s.callEnded(at)
}

// hasCalls reports whether a call is in flight at a node. The mutex is held.
func (s *quorumState) hasCalls() bool { return slices.ContainsFunc(s.slots, slot.hasCall) }

// awaitLeftovers waits until the leftovers have ended, at most for patience. It reports false if
// the attempt or the lock ended first.
func (s *quorumState) awaitLeftovers(left []leftover, patience time.Duration) bool {
	s.mu.Lock()
	if !s.accepts() {
		s.unlock()
		return false
	}
	if s.ended == nil {
		s.ended = make(chan struct{})
	}
	ended := s.ended
	s.unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, l := range left {
		select {
		case <-l.ends:
		case <-ended:
			return false
		case <-timer.C:
			return true
		}
	}
	return true
}

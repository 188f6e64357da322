package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/locker"
)

// leftovers are the ended holds of a Locker, by name, that still have an acquire or a release in
// flight at a node: those of failed attempts and of released locks.
type leftovers struct {
	mu     sync.Mutex
	byName map[string][]*hold
}

func (l *leftovers) add(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byName == nil {
		l.byName = map[string][]*hold{}
	}
	l.byName[h.req.Name] = append(l.byName[h.req.Name], h)
}

func (l *leftovers) remove(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := slices.DeleteFunc(l.byName[h.req.Name], func(other *hold) bool { return other == h })
	if len(rest) == 0 {
		delete(l.byName, h.req.Name)
		return
	}
	l.byName[h.req.Name] = rest
}

func (l *leftovers) of(name string) []*hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.byName[name])
}

// leftover is an earlier hold's calls in flight at one node.
type leftover struct {
	owner string
	gone  <-chan struct{} // closed when they have ended
}

// leftoversAt returns the leftovers of the holds at node i.
func leftoversAt(holds []*hold, i int) (all []leftover) {
	for _, h := range holds {
		if gone := h.callEnds(i); gone != nil {
			all = append(all, leftover{h.owner, gone})
		}
	}
	return all
}

// mayHaveRefused reports whether err is a refusal that names the owner of one of the leftovers as
// the holder.
func mayHaveRefused(all []leftover, err error) bool {
	held, refused := errors.AsType[*locker.ContentionError](err)
	return refused && held.Owner != "" && slices.ContainsFunc(all, func(l leftover) bool { return l.owner == held.Owner })
}

// callEnds returns a channel that is closed once the hold, which has ended, has no call in
// flight at node i; nil if it has none now.
func (h *hold) callEnds(i int) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := &h.members[i]
	if !m.asking && !m.ending {
		return nil
	}
	if m.gone == nil {
		m.gone = make(chan struct{})
	}
	return m.gone
}

// becomeLeftover adds the hold, which has ended, to the leftovers while it has calls in flight. The
// mutex is held.
func (h *hold) becomeLeftover() {
	if h.ended != nil {
		close(h.ended)
		h.ended = nil
	}
	if !h.isLeftover && h.busy() {
		h.leftovers.add(h)
		h.isLeftover = true
	}
}

// callEnded notes that a call of node i has ended. The mutex is held.
func (h *hold) callEnded(i int) {
	if m := &h.members[i]; m.gone != nil && !m.asking && !m.ending {
		close(m.gone)
		m.gone = nil
	}
	if h.isLeftover && !h.busy() {
		h.leftovers.remove(h)
		h.isLeftover = false
	}
}

// releaseEnded notes that the release of what node i gave has ended.
func (h *hold) releaseEnded(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members[i].ending = false
	h.callEnded(i)
}

// busy reports whether the hold has a call in flight at a node. The mutex is held.
func (h *hold) busy() bool {
	for i := range h.members {
		if m := &h.members[i]; m.asking || m.ending {
			return true
		}
	}
	return false
}

// awaitLeftovers waits until the leftovers have ended. It reports false if the attempt or the lock
// ended first.
func (h *hold) awaitLeftovers(ctx context.Context, left []leftover) bool {
	h.mu.Lock()
	if !h.accepts() {
		h.mu.Unlock()
		return false
	}
	if h.ended == nil {
		h.ended = make(chan struct{})
	}
	ended := h.ended
	h.mu.Unlock()
	for _, l := range left {
		select {
		case <-l.gone:
		case <-ended:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

package redlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// convertPart changes the mode at one node, and asks the node also where it is that already: what
// it says, the quorum says. A part that is to be exclusive must last until the Deadline first.
func (h *hold) convertPart(m *member, p *part, to locker.Mode, r *round) error {
	h.mu.Lock()
	lasts := h.mode == to || reaches(p.lock.Deadline(), h.deadline) // what is as the hold is was just renewed
	called := h.calledFor(to)
	lease := h.lease(0)
	h.mu.Unlock()
	if called && !lasts {
		if err := h.renewFirst(m, p, lease, r); err != nil {
			return err
		}
	}
	return h.changeAlone(m, p, to, r)
}

// renewFirst renews a part for a round, while that is waited for.
func (h *hold) renewFirst(m *member, p *part, lease time.Duration, r *round) error {
	own := newRound(1, 1)
	own.errs[0] = errUnanswered
	own.pending++
	h.renewPart(m, p, renewal{reply: reply{own, 0}, ttl: lease})
	select {
	case <-own.decided:
	case <-r.gone:
	}
	own.stopWaiting()
	own.mu.Lock()
	err := own.errs[0]
	own.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil && !reaches(p.lock.Deadline(), h.deadline) {
		return errShort
	}
	return err
}

// changeAlone changes the mode at one node once no other conversion is under way there.
func (h *hold) changeAlone(m *member, p *part, to locker.Mode, r *round) error {
	if err := h.alone(m, p, to, r); err != nil {
		return err
	}
	return h.change(m, p, to)
}

// alone marks a part as converting, once no other conversion of it is under way. One that hangs is
// not sent again.
func (h *hold) alone(m *member, p *part, to locker.Mode, r *round) error {
	for {
		h.mu.Lock()
		earlier := p.converting
		var err error
		switch {
		case m.part != p:
			err = locker.ErrNotHeld
		case !h.calledFor(to):
			err = errOvertaken
		case earlier == nil:
			p.converting = make(chan struct{})
		}
		h.mu.Unlock()
		if err != nil || earlier == nil {
			return err
		}
		select {
		case <-earlier:
		case <-r.gone:
			return fmt.Errorf("an earlier conversion: %w", errUnanswered)
		}
	}
}

// calledFor tells whether the hold is, or is being made, what a part is to be: a part that is slow
// to begin may find that the quorum did without it, and that the mode was changed again. The mutex
// is held.
func (h *hold) calledFor(mode locker.Mode) bool {
	return (mode == locker.Exclusive) == (h.upgrading || h.mode == locker.Exclusive)
}

// change changes the mode of a part that is marked as converting.
func (h *hold) change(m *member, p *part, to locker.Mode) error {
	h.mu.Lock()
	if !h.calledFor(to) {
		defer h.mu.Unlock()
		p.converted()
		return errOvertaken
	}
	exclusive, unsure := p.exclusive, p.unsure
	fits := !unsure && exclusive == (to == locker.Exclusive)
	if !fits {
		p.exclusive, p.unsure = false, true
	}
	h.mu.Unlock()
	err := h.sendMode(p, to)
	h.mu.Lock()
	defer h.mu.Unlock()
	p.converted()
	switch {
	case fits: // it was but asked
	case err == nil:
		p.exclusive, p.unsure = to == locker.Exclusive, false
		p.fence = max(p.fence, p.lock.Fence())
	case errors.Is(err, errors.ErrUnsupported):
		p.exclusive, p.unsure = exclusive, unsure
	case errors.Is(err, locker.ErrNotAcquired):
		p.unsure = false // who is refused is a reader
	}
	h.note(m, p, err)
	if to != h.mode {
		h.comply(m, p)
	}
	h.watch()
	return err
}

// converted ends the conversion of a part. The hold's mutex is held.
func (p *part) converted() {
	close(p.converting)
	p.converting = nil
}

func (h *hold) sendMode(p *part, mode locker.Mode) error {
	ctx, stop := h.bound()
	defer stop()
	if mode == locker.Exclusive {
		return p.lock.Upgrade(ctx)
	}
	return p.lock.Downgrade(ctx)
}

// mend makes a part shared again, in the background, that is exclusive without need, or may be. It
// goes on counting meanwhile. The mutex is held.
func (h *hold) mend(m *member, p *part) {
	needless := h.mode == locker.Shared && !h.upgrading && p != nil && (p.exclusive || p.unsure)
	if h.phase != holding || !needless || m.part != p || p.converting != nil {
		return
	}
	p.converting = make(chan struct{})
	go func() { _ = h.change(m, p, locker.Shared) }() // at the worst the next renewal sees to it
}

// conform brings a part to the hold's mode, for as long as round r is waited for; nil: an
// AttemptTimeout. Where that is exclusive, the part does not count before.
func (h *hold) conform(m *member, p *part, r *round) error {
	h.mu.Lock()
	shared, fits := h.mode == locker.Shared, p.exclusive
	if shared {
		h.mend(m, p)
	}
	h.mu.Unlock()
	if shared || fits {
		return nil
	}
	if r == nil {
		r = newRound(0, 0)
		timer := time.AfterFunc(h.timeout, r.stopWaiting)
		defer timer.Stop()
	}
	err := h.changeAlone(m, p, locker.Exclusive, r)
	if errors.Is(err, errOvertaken) {
		return nil // it was downgraded meanwhile
	}
	return err
}

// comply brings a part to the hold's mode in the background, where nobody does yet. The mutex is
// held.
func (h *hold) comply(m *member, p *part) {
	h.mend(m, p)
	if h.phase == holding && h.mode == locker.Exclusive && p != nil && m.part == p && !p.exclusive && p.converting == nil {
		go func() { _ = h.conform(m, p, nil) }() // at the worst the next renewal sees to it
	}
}

package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// takeTurn waits until no operation that changes what counts is under way: another would judge by
// what changes meanwhile.
func (h *hold) takeTurn(ctx context.Context) error {
	if err := ended(ctx); err != nil {
		return err // select would choose at random
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

func (h *hold) passTurn() { <-h.turn }

// renew extends the lease at a quorum, and restores the lock where it is missing.
func (h *hold) renew(ctx context.Context, ttl time.Duration) (lease.Term, error) {
	if err := h.takeTurn(ctx); err != nil {
		return lease.Term{}, err
	}
	defer h.passTurn()
	h.mu.Lock()
	began, until := time.Now(), h.lease(ttl)
	aim := began.Add(ttl)
	h.renewed = time.Time{}
	h.mu.Unlock()
	t, err := h.each(ctx, func(m *member, p *part, r reply) { h.renewPart(m, p, renewal{r, until, began}) })
	if t.done >= h.quorum && h.extend(aim, ttl) {
		return h.term(), nil
	}
	err = h.missed(t, err)
	if t.done >= h.quorum && !errors.Is(err, locker.ErrNotHeld) {
		err = fmt.Errorf("the quorum has ended since: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == holding {
		h.restore(ttl, false) // that may be what is missing
	}
	return lease.Term{}, err
}

func (h *hold) term() lease.Term {
	h.mu.Lock()
	defer h.mu.Unlock()
	return lease.Term{Deadline: h.deadline}
}

// extend moves the Deadline to when the quorum ends that was renewed, and restores the lock where
// it is missing. False: the quorum has ended since, or the Deadline has passed: the Lock is lost.
func (h *hold) extend(aim time.Time, ttl time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, began := h.view(), aim.Add(-ttl)
	end, ok := v.end()
	if ok = ok && v.renewedSince(began) >= h.quorum && h.phase == holding && h.live(); ok {
		h.deadline = movedDeadline(h.deadline, end, aim)
		h.renewed = began
		h.confirm(h.renewed)
		h.restore(ttl, true)
	}
	h.watch()
	return ok
}

// flight is a renewal of one part. Those who ask for one meanwhile wait for it, and are sent
// another: the answer to what was sent before they asked says nothing of now. One that hangs is not
// sent again.
type flight struct {
	serves, waiting []renewal
}

// renewal is what a round asks of a part.
type renewal struct {
	reply
	ttl   time.Duration
	began time.Time // when the Renew did that asks for it; zero: another operation asks
}

// renewPart extends the lease at one node, and brings the part up to what the hold is by now. It
// returns at once.
func (h *hold) renewPart(m *member, p *part, asked renewal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch f := p.flight; {
	case m.part != p:
		asked.answer(locker.ErrNotHeld)
	case f == nil:
		h.fly(m, p, []renewal{asked})
	default:
		f.waiting = append(slices.DeleteFunc(f.waiting, renewal.over), asked)
	}
}

// fly sends a renewal to the node. The mutex is held.
func (h *hold) fly(m *member, p *part, serves []renewal) {
	f := &flight{serves: serves}
	var ttl time.Duration
	for _, w := range serves {
		ttl = max(ttl, w.ttl)
	}
	p.flight = f
	sent := time.Now()
	go func() {
		err := h.send(m, p, ttl)
		h.mu.Lock()
		defer h.mu.Unlock()
		p.flight = nil
		if err == nil {
			p.renewed = sent
		}
		left := slices.ContainsFunc(f.serves, renewal.over)
		won := slices.ContainsFunc(slices.Concat(f.serves, f.waiting), func(w renewal) bool {
			return !w.began.IsZero() && w.began.Equal(h.renewed)
		})
		for _, w := range f.serves {
			w.answer(err)
		}
		switch f.waiting = slices.DeleteFunc(f.waiting, renewal.over); {
		case len(f.waiting) == 0:
			if err == nil {
				h.catchUp(m, p, sent.Add(ttl))
			}
		case m.part == p:
			h.fly(m, p, f.waiting)
		default:
			for _, w := range f.waiting {
				w.answer(locker.ErrNotHeld)
			}
		}
		if _, ok := h.view().end(); ok && h.phase == holding && m.part == nil && left {
			h.restore(ttl, won) // the renewal was done when it was found that there is nothing here
		}
	}()
}

// catchUp renews p in the background if it was granted until grantedUntil, and a renewal has moved the
// Deadline beyond that before p's answer came. Otherwise p would not count until the next renewal.
// The mutex is held.
func (h *hold) catchUp(m *member, p *part, grantedUntil time.Time) {
	if h.phase != holding || m.part != p || p.flight != nil || !grantedUntil.Before(h.deadline) || reaches(p.lock.Deadline(), h.deadline) {
		return
	}
	r := newRound(1, 1)
	r.pending++
	r.stopWaiting() // nobody waits for it
	h.fly(m, p, []renewal{{reply: reply{r, 0}, ttl: h.lease(0)}})
}

// send renews a part, raises its counter where that is behind, and changes its mode where that is
// another.
func (h *hold) send(m *member, p *part, ttl time.Duration) error {
	ctx, stop := h.bound()
	defer stop()
	if err := p.lock.Renew(ctx, ttl); err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.note(m, p, err)
		return err
	}
	if err := h.lift(m, p); err != nil {
		return err
	}
	return h.conform(m, p, nil)
}

// restore asks the nodes where nothing is held, in the background, while the quorum holds. Where a
// renewal has not won, those are left out that may have been taken over, and they give no benefit
// of the doubt. The mutex is held.
func (h *hold) restore(ttl time.Duration, won bool) {
	if h.upgrading || !h.live() {
		return
	}
	req := h.req
	req.Resume, req.Owner, req.Mode, req.TTL = locker.Handle{}, h.owner, h.mode, h.lease(ttl)
	earlier := h.leftovers.of(req.Name)
	for i := range h.members {
		m := &h.members[i]
		if m.part != nil || m.asking || !m.lapsed.IsZero() || m.taken && !won {
			continue
		}
		m.asking, m.asked = true, time.Time{}
		h.leaveBehind(i, true)
		if won {
			m.asked = time.Now()
		}
		ctx, stop := lease.WithoutWaiting(h.ctx), func() {} // what holds does not wait
		if !h.deadline.IsZero() {
			ctx, stop = detach(ctx, time.Until(h.deadline))
		}
		go func() {
			defer stop()
			h.ask(ctx, i, req, earlier)
		}()
	}
}

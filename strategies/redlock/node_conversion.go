package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// convert changes the node lock's mode; left is closed when the operation's caller leaves. It asks
// the node even if the mode is unchanged: the answer counts. Before an upgrade it renews the node
// lock until the Deadline.
func (p *nodeLock) convert(to locker.Mode, left <-chan struct{}) error {
	h := p.of
	h.mu.Lock()
	lasts := h.mode == to || reaches(p.lock.Deadline(), h.deadline) // if h.mode == to, it was just renewed
	needless := lasts || !h.wants(to)
	ttl := h.leaseToAsk(0)
	h.unlock()
	if !needless {
		if err := p.renewForConversion(ttl, left); err != nil {
			return err
		}
	}
	return p.convertAlone(to, left)
}

// renewForConversion renews the node lock until the Deadline.
func (p *nodeLock) renewForConversion(ttl time.Duration, left <-chan struct{}) error {
	err := p.renew(ttl, time.Now(), left)
	p.of.mu.Lock()
	defer p.of.unlock()
	switch {
	case err == nil && isClosed(left):
		return errUnanswered // the conversion was not sent
	case err == nil && !reaches(p.lock.Deadline(), p.of.deadline):
		return errShort
	}
	return err
}

// unknownMode is the mode after a conversion of unknown outcome.
const unknownMode locker.Mode = 1 << 7

// modeAfter returns the mode of a node lock after a conversion from before ended with err;
// errUnanswered: it is in flight.
func modeAfter(before, to locker.Mode, err error) locker.Mode {
	switch {
	case err == nil:
		return to
	case before == to, errors.Is(err, errors.ErrUnsupported): // only asked, or not done
		return before
	case errors.Is(err, locker.ErrNotAcquired): // a refused upgrade leaves it shared
		return locker.Shared
	default:
		return unknownMode
	}
}

// convertAlone changes the node lock's mode once no other conversion of it is in flight.
func (p *nodeLock) convertAlone(to locker.Mode, left <-chan struct{}) error {
	if err := p.claim(&p.converting, left); err != nil {
		return err
	}
	return p.sendConversion(to)
}

// sendConversion is convertAlone after claim.
func (p *nodeLock) sendConversion(to locker.Mode) error {
	h := p.of
	h.mu.Lock()
	before, wanted := p.mode, h.wants(to)
	if wanted {
		p.mode = modeAfter(before, to, errUnanswered)
	}
	h.unlock()
	err := errOvertaken
	if wanted {
		err = p.sendMode(to)
	}
	h.mu.Lock()
	defer h.unlock()
	unclaim(&p.converting)
	if wanted {
		p.converted(before, to, err)
	}
	return err
}

func (p *nodeLock) sendMode(mode locker.Mode) error {
	ctx, stop := p.of.untilDeadline()
	defer stop()
	if mode == locker.Exclusive {
		return p.lock.Upgrade(ctx)
	}
	return p.lock.Downgrade(ctx)
}

// converted records the outcome of a conversion sent to the node. The mutex is held.
func (p *nodeLock) converted(before, to locker.Mode, err error) {
	h := p.of
	p.mode = modeAfter(before, to, err)
	if err == nil && before != to {
		p.fence = max(p.fence, p.lock.Fence())
	}
	p.dropIfLost(err)
	if to != h.mode {
		p.ensureMode()
	}
	h.watchLoss()
}

// adoptMode changes the node lock to the lock's mode. A node lock of a shared lock counts in either
// mode: adoptMode changes it in the background. One of an exclusive lock counts once it is
// exclusive.
func (p *nodeLock) adoptMode() error {
	h := p.of
	h.mu.Lock()
	shared, fits := h.mode == locker.Shared, p.mode == locker.Exclusive
	if shared {
		p.ensureMode()
	}
	h.unlock()
	if shared || fits {
		return nil
	}
	ctx, stop := context.WithTimeout(h.ctx, h.attemptTimeout())
	defer stop()
	err := p.convertAlone(locker.Exclusive, ctx.Done())
	if errors.Is(err, errOvertaken) {
		return nil // it was downgraded meanwhile
	}
	return err
}

// ensureMode changes the node lock to the lock's mode in the background, unless a conversion is in
// flight. If the change fails, the next renewal tries again. The mutex is held.
func (p *nodeLock) ensureMode() {
	h := p.of
	if h.phase != holding || h.upgrading || p.mode == h.mode || !p.isCurrent() || p.converting != nil {
		return
	}
	p.converting = make(chan struct{})
	to := h.mode
	go func() { _ = p.sendConversion(to) }()
}

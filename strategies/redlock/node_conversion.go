package redlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/locker"
)

// convert changes the node lock's mode for an operation. It asks the node also if the mode is that
// already: the node's answer counts. A node lock that is to be exclusive is renewed until the
// Deadline first.
func (p *nodeLock) convert(to locker.Mode, op *operation) error {
	h := p.of
	h.mu.Lock()
	lasts := h.mode == to || reaches(p.lock.Deadline(), h.deadline) // what has the lock's mode was just renewed
	wanted := h.wants(to)
	ttl := h.leaseToAsk(0)
	h.unlock()
	if wanted && !lasts {
		if err := p.renewFor(op, ttl); err != nil {
			return err
		}
	}
	return p.convertAlone(to, op)
}

// renewFor renews the node lock until the Deadline, while somebody waits for op.
func (p *nodeLock) renewFor(op *operation, ttl time.Duration) error {
	own := newOperation(1, 1)
	p.renew(renewalRequest{pendingReply: own.expect(0), ttl: ttl})
	select {
	case <-own.decided:
	case <-op.left:
	}
	own.stopWaiting()
	err := own.errOf(0)
	p.of.mu.Lock()
	defer p.of.unlock()
	if err == nil && !reaches(p.lock.Deadline(), p.of.deadline) {
		return errShort
	}
	return err
}

// convertAlone changes the node lock's mode once no other conversion of it is in flight.
func (p *nodeLock) convertAlone(to locker.Mode, op *operation) error {
	if err := p.beginConversion(to, op); err != nil {
		return err
	}
	return p.finishConversion(to)
}

// beginConversion marks the node lock as converting, once no other conversion of it is in flight.
// One that hangs is not sent again.
func (p *nodeLock) beginConversion(to locker.Mode, op *operation) error {
	h := p.of
	for {
		h.mu.Lock()
		earlier := p.converting
		var err error
		switch {
		case !p.isCurrent():
			err = locker.ErrNotHeld
		case !h.wants(to):
			err = errOvertaken
		case earlier == nil:
			p.converting = make(chan struct{})
		}
		h.unlock()
		if err != nil || earlier == nil {
			return err
		}
		select {
		case <-earlier:
		case <-op.left:
			return fmt.Errorf("an earlier conversion: %w", errUnanswered)
		}
	}
}

// finishConversion changes the mode of a node lock that is marked as converting.
func (p *nodeLock) finishConversion(to locker.Mode) error {
	h := p.of
	h.mu.Lock()
	before, wanted := p.mode, h.wants(to)
	if wanted {
		p.mode = before.after(to, errUnanswered)
	}
	h.unlock()
	err := errOvertaken
	if wanted {
		err = sendMode(h, p.lock, to)
	}
	h.mu.Lock()
	defer h.unlock()
	close(p.converting)
	p.converting = nil
	if wanted {
		p.converted(before, to, err)
	}
	return err
}

func sendMode(h *heldLock, lock *locker.Lock, mode locker.Mode) error {
	ctx, stop := h.untilDeadline()
	defer stop()
	if mode == locker.Exclusive {
		return lock.Upgrade(ctx)
	}
	return lock.Downgrade(ctx)
}

// converted records how a conversion ended that was sent to the node. The mutex is held.
func (p *nodeLock) converted(before nodeMode, to locker.Mode, err error) {
	h := p.of
	p.mode = before.after(to, err)
	if err == nil && !before.is(to) {
		p.fence = max(p.fence, p.lock.Fence())
	}
	p.dropIfLost(err)
	if to != h.mode {
		p.ensureMode()
	}
	h.watchLoss()
}

// adoptMode changes the node lock to the lock's mode. A node lock that is to be exclusive does not
// count before; one that is to be shared counts, and is changed in the background.
func (p *nodeLock) adoptMode() error {
	h := p.of
	h.mu.Lock()
	shared, fits := h.mode == locker.Shared, p.mode.exclusive
	if shared {
		p.makeShared()
	}
	h.unlock()
	if shared || fits {
		return nil
	}
	op := newOperation(0, 0)
	timer := time.AfterFunc(h.timeout, op.stopWaiting)
	defer timer.Stop()
	err := p.convertAlone(locker.Exclusive, op)
	if errors.Is(err, errOvertaken) {
		return nil // it was downgraded meanwhile
	}
	return err
}

// ensureMode changes the node lock to the lock's mode in the background, unless that is being done.
// The mutex is held.
func (p *nodeLock) ensureMode() {
	h := p.of
	p.makeShared()
	if h.phase == holding && h.mode == locker.Exclusive && p.isCurrent() && !p.mode.exclusive && p.converting == nil {
		go func() { _ = p.adoptMode() }() // if it fails, the next renewal tries again
	}
}

// makeShared makes a node lock shared again, in the background, that is exclusive without need, or
// may be. It counts meanwhile. The mutex is held.
func (p *nodeLock) makeShared() {
	h := p.of
	needless := h.mode == locker.Shared && !h.upgrading && !p.mode.is(locker.Shared)
	if h.phase != holding || !needless || !p.isCurrent() || p.converting != nil {
		return
	}
	p.converting = make(chan struct{})
	go func() { _ = p.finishConversion(locker.Shared) }() // if it fails, the next renewal tries again
}

// answerOnceConverted answers when no conversion of the node lock is in flight any more: an upgrade
// that failed is followed by a downgrade. converted is closed when the one in flight is done.
func (p *nodeLock) answerOnceConverted(reply pendingReply, converted <-chan struct{}) {
	for converted != nil {
		select {
		case <-converted:
		case <-reply.op.left:
			return
		}
		p.of.mu.Lock()
		converted = p.converting
		p.of.unlock()
	}
	reply.answer(nil)
}

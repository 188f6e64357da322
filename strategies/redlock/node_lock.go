package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/acquisition"
	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// nodeLock is the lock of an attempt, or of its heldLock, at one node. It wraps the Lease of the
// node's lock, to record the node's health.
type nodeLock struct {
	lease.Lease
	of      *heldLock
	slot    *slot
	lock    *locker.Lock
	resumed bool        // it was taken over from another Lock
	quiet   atomic.Bool // a release is to wake nobody, and undoes a resume

	acquisition *acquisition.Acquisition // keeps the node's driver open until the lock is the caller's

	// The hold's mutex guards these.
	fence      int64         // the node's counter is at least this
	mode       locker.Mode   // or unknownMode
	converting chan struct{} // closed when the conversion in flight is done; nil: there is none
	renewing   chan struct{} // the same of the renewal in flight
	renewed    time.Time     // when the last granted renewal was sent
	named      bool          // a Handle given out names it
	note       string        // as the node is known to store it
}

// newNodeLock makes the nodeLock from the answer of the slot's node to req. A missing or ended
// lock, or one of another mode, is a failure of the node.
func newNodeLock(
	h *heldLock, s *slot, req *locker.Request, lock *locker.Lock, a *acquisition.Acquisition, err error,
) (*nodeLock, error) {
	switch {
	case err != nil:
		return nil, err
	case lock == nil:
		return nil, errors.New("its Locker returned neither a lock nor an error")
	}
	p := &nodeLock{
		of: h, slot: s, lock: lock, fence: lock.Fence(),
		resumed: !req.Resume.IsZero(), mode: req.Mode, note: req.Note, acquisition: a,
	}
	lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
		p.Lease = inner
		return p
	})
	switch {
	case p.Lease == nil:
		err = errors.New("its Locker returned a lock without a Lease")
	case lock.Err() != nil:
		err = fmt.Errorf("its lock had ended: %v", lock.Err()) //nolint:errorlint // no answer of the node
	case lock.Mode() != req.Mode:
		err = fmt.Errorf("its lock is %v, %v was asked for", lock.Mode(), req.Mode)
	}
	if err != nil {
		go func() { _ = p.undo() }()
		return nil, err
	}
	if h.fenceKnown != nil && p.fence <= 0 {
		_ = p.undo()
		return nil, fmt.Errorf("it gave no fencing token: %w", errors.ErrUnsupported)
	}
	return p, nil
}

// Do implements lease.Lease.
func (p *nodeLock) Do(ctx context.Context, op lease.Op) (result lease.Result, err error) {
	p.slot.node.beginCall(ctx, p.of.attemptTimeout())
	defer p.slot.node.endCall(ctx, &err, p.of.attemptTimeout())
	if op.Kind == lease.OpRelease && p.quiet.Load() {
		result, err := p.Lease.Do(ctx, lease.Op{Kind: lease.OpUndo})
		if p.resumed || !errors.Is(err, errors.ErrUnsupported) {
			return result, err
		}
	}
	if op.Kind == lease.OpRelease {
		p.of.mu.Lock()
		op.KeepUntil = p.of.keepUntil // the quorum's: this node may have been acquired later
		p.of.unlock()
	}
	return p.Lease.Do(ctx, op)
}

// Unwrap returns the Lease of the node's lock.
func (p *nodeLock) Unwrap() lease.Lease { return p.Lease }

// undo releases an unused node lock, waking nobody.
func (p *nodeLock) undo() error {
	p.quiet.Store(true)
	defer p.acquisition.End()
	return p.lock.Release(p.of.ctx) // at worst it expires
}

// isCurrent reports whether p is its slot's node lock. The mutex is held.
func (p *nodeLock) isCurrent() bool { return p.slot.held == p }

// dropIfLost drops the node lock if err matches ErrNotHeld. It is released all the same: if it
// expired by the local clock, an unanswered renewal may have extended it. The mutex is held.
func (p *nodeLock) dropIfLost(err error) {
	if !errors.Is(err, locker.ErrNotHeld) || !p.isCurrent() {
		return
	}
	p.drop(err)
	go func() {
		defer p.acquisition.End()
		_ = p.lock.Release(p.of.ctx)
	}()
}

// drop removes the node lock from its slot. err says why. The mutex is held.
func (p *nodeLock) drop(err error) {
	if !p.isCurrent() {
		return
	}
	s := p.slot
	s.held, s.err = nil, err
	switch d := p.lock.Deadline(); {
	case !p.named:
	case !d.IsZero() && remaining(d, time.Now()) <= 0: // it expired, but may have been taken over before
		s.expired = d
	default:
		s.takenOver = true
	}
	p.of.watchLoss()
}

// raiseOnceKnown raises the node's counter to the lock's fencing token, once known.
func (p *nodeLock) raiseOnceKnown() {
	if known := p.of.fenceKnown; known != nil {
		<-known
		_ = p.raiseToToken() // the slot keeps the error
	}
}

// raiseToToken raises the node's counter to the lock's fencing token, if it is behind: from then on
// the node counts.
func (p *nodeLock) raiseToToken() error {
	h := p.of
	if h.fenceKnown == nil {
		return nil
	}
	h.mu.Lock()
	fence := h.fence
	h.unlock()
	err := p.raise(fence)
	h.mu.Lock()
	defer h.unlock()
	if p.isCurrent() {
		p.slot.err = err
	}
	h.attempt.tryDecide()
	h.watchLoss()
	return err
}

// upgradeAndRaise upgrades the node lock, if it was not, and raises the node's counter.
func (p *nodeLock) upgradeAndRaise(fence int64, deadline time.Time, left <-chan struct{}) error {
	p.of.mu.Lock()
	upgraded := p.mode == locker.Exclusive && reaches(p.lock.Deadline(), deadline)
	p.of.unlock()
	if !upgraded {
		if err := p.convert(locker.Exclusive, left); err != nil {
			return err
		}
	}
	return p.raise(fence)
}

// raise raises the node's counter to at least fence.
func (p *nodeLock) raise(fence int64) error {
	h := p.of
	h.mu.Lock()
	lost, enough := !p.isCurrent(), p.fence >= fence
	h.unlock()
	switch {
	case lost:
		return locker.ErrNotHeld
	case enough:
		return nil
	}
	ctx, stop := h.untilDeadline()
	defer stop()
	result, err := p.Do(ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: fence})
	h.mu.Lock()
	defer h.unlock()
	if err == nil {
		p.fence = max(p.fence, fence, result.Fence)
	}
	p.dropIfLost(err)
	return err
}

package redlock_test

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// minting is a hooked node that mints a token when it upgrades, as rwhash does.
type minting struct {
	*hooked
	mu  sync.Mutex
	top int64
}

func (m *minting) Acquire(ctx context.Context, req locker.Request) (*locker.Lock, error) {
	lock, err := m.hooked.Acquire(ctx, req)
	if err == nil {
		m.mu.Lock()
		m.top = max(m.top, lock.Fence())
		m.mu.Unlock()
		lock.Hold().Wrap(func(inner lease.Lease) lease.Lease {
			return &mintingLease{Lease: inner, node: m, mode: req.Mode, fenced: lock.Fence() > 0}
		})
	}
	return lock, err
}

type mintingLease struct {
	lease.Lease
	node   *minting
	fenced bool
	mu     sync.Mutex
	mode   locker.Mode
}

func (l *mintingLease) Do(ctx context.Context, op lease.Op) (lease.Term, error) {
	term, err := l.Lease.Do(ctx, op)
	if err != nil || !l.fenced {
		return term, err
	}
	l.node.mu.Lock()
	defer l.node.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.node.top = max(l.node.top, term.Fence)
	if op.Kind == lease.OpConvert {
		if op.Mode == locker.Exclusive && l.mode == locker.Shared {
			l.node.top++ // set by a raise that has no hook
			inner := l.Lease.(*hookedLease).Lease
			if term, err = inner.Do(context.Background(), lease.Op{Kind: lease.OpRaiseFence, Fence: l.node.top}); err != nil {
				return term, err
			}
		}
		l.mode = op.Mode
	}
	return term, nil
}

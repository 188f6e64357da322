package lockertest

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// FindHolds is for [locker.Break]. The Locks of the holds learn of their end when they renew or
// release.
func (l *Locker) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	if err := l.check(ctx, locker.Request{Name: name}); err != nil {
		return locker.State{}, nil, err
	}
	if err := l.reach(ctx, attemptTimeout(0)); err != nil {
		return locker.State{}, nil, known(err)
	}
	defer l.mu.Unlock()
	found := slices.Clone(l.of(name).live())
	if len(found) == 0 {
		return locker.State{}, nil, nil
	}
	state := l.state(name)
	if t := l.of(name); l.permits == 0 {
		for _, h := range found {
			state.Fence = max(state.Fence, h.fence)
		}
		if t.fence > 0 {
			t.mint() // later readers have it
		}
	}
	return state, func(ctx context.Context) error { return l.breakHolds(ctx, name, found) }, nil
}

// breakHolds ends the live holds of found.
func (l *Locker) breakHolds(ctx context.Context, name string, found []*hold) (err error) {
	done := l.record(Call{Op: "break", Request: locker.Request{Name: name}})
	defer func() { done(err) }()
	end := func() error {
		t, ended := l.of(name), 0
		for _, h := range found {
			if slices.Contains(t.live(), h) {
				h.end(lease.Op{Kind: lease.OpRelease})
				ended++
			}
		}
		if ended == 0 {
			return locker.ErrNotHeld
		}
		return nil
	}
	if err := l.reachToRelease(ctx, found[0].ttl); err != nil {
		l.afterOutage(func() { _ = end() })
		return err
	}
	defer l.mu.Unlock()
	return end()
}

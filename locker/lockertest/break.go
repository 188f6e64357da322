package lockertest

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/locker"
)

// FindHolds implements locker.Breaker. The Locks of the holds learn of it when they renew or
// release.
func (l *Locker) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	state, err := l.Inspect(ctx, name)
	if err != nil || !state.Held {
		return locker.State{}, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := slices.Clone(l.of(name).live())
	for _, h := range found {
		state.Fence = max(state.Fence, h.fence)
	}
	return state, func(ctx context.Context) error { return l.endHolds(ctx, name, found) }, nil
}

func (l *Locker) endHolds(ctx context.Context, name string, found []*hold) error {
	if err := locker.ContextErr(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(name)
	before := len(t.live())
	t.holds = slices.DeleteFunc(t.holds, func(h *hold) bool { return slices.Contains(found, h) })
	if len(t.holds) == before {
		return locker.ErrNotHeld
	}
	return nil
}

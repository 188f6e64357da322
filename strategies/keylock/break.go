package keylock

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/locker/lease"
)

// FindHolds is for [locker.Break]. The returned function releases each hold by its value, as
// ReleaseHandle does.
func (l *Locker) FindHolds(ctx context.Context, name string) (locker.State, func(context.Context) error, error) {
	state, reply, err := l.inspect(ctx, name, "holds")
	if err != nil || !state.Held {
		return locker.State{}, nil, err
	}
	var values []string
	for i := l.spec.valuesAt(); i < l.spec.stateLen(reply); i++ {
		value, err := reply.Text(i)
		if err != nil {
			return locker.State{}, nil, malformed(err)
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		return locker.State{}, nil, fmt.Errorf("%s cannot tell how to end what key %.64q holds: %w", l.spec.Name,
			l.cfg.Prefix+name, errors.ErrUnsupported)
	}
	return state, func(ctx context.Context) error { return l.endHolds(ctx, name, state, values) }, nil
}

// endHolds ends the holds of those values. It raises the fencing token first if the holders are
// readers: later readers would otherwise share it.
func (l *Locker) endHolds(ctx context.Context, name string, state locker.State, values []string) error {
	raised := state.Fence == 0 || state.Mode != locker.Shared // true also if none is needed
	ended := 0
	for i, value := range values {
		err := lease.ContextErr(ctx)
		h := l.foundHold(name, value, 0)
		if !raised && err == nil {
			h.counter = h.l.spec.counterKey(h.key)
			_, err = h.Do(ctx, lease.Op{Kind: lease.OpRaiseFence, Fence: state.Fence + 1})
			raised = err == nil
		}
		if err == nil {
			_, err = h.Do(ctx, lease.Op{Kind: lease.OpRelease})
		}
		switch {
		case err == nil:
			ended++
		case !errors.Is(err, locker.ErrLost):
			return fmt.Errorf("%d of %d holds may remain: %w", len(values)-i, len(values), err)
		}
	}
	if ended == 0 {
		return locker.ErrNotHeld
	}
	return nil
}

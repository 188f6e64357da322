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
	args := []string{"holds"}
	if l.spec.Shared {
		args = append(args, millis(l.cfg.ttl(0)+counterLife))
	}
	state, reply, err := l.inspect(ctx, name, args...)
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
	return state, func(ctx context.Context) error { return l.endHolds(ctx, name, values) }, nil
}

// endHolds ends the holds of those values.
func (l *Locker) endHolds(ctx context.Context, name string, values []string) error {
	ended := 0
	for i, value := range values {
		err := lease.ContextErr(ctx)
		if err == nil {
			_, err = l.foundHold(name, value, 0).Do(ctx, lease.Op{Kind: lease.OpRelease})
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
